"""Statistics that look for reports which no honest device would have sent."""
