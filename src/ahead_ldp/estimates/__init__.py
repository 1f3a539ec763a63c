"""What comes out: estimates, answers with intervals, quantiles, and the numerics that several methods share."""
