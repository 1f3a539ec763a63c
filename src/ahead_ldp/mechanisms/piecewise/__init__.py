"""Piecewise densities: PriPL and PrivNUD."""
