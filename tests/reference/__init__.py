"""Slow, obvious versions of what the package computes fast. Nothing here is clever."""
