"""Full hierarchies: HIO, HH with constrained inference, DHT on Haar coefficients."""
