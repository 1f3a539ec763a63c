"""The default for several attributes: single attributes and grids of pairs, read together."""
