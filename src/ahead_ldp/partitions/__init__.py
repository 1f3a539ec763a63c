"""How a domain is cut: trees, grids, covers, summed areas."""
