"""Grids and marginals: TDG, HDG and CALM."""
