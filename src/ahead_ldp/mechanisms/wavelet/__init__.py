"""Wavelet expansion of a density: coefficients of low orders first."""
