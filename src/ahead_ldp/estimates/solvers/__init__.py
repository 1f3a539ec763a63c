"""Numerical problems that more than one family of methods solves."""
