"""Quadtrees and kd-trees of places: boxes cut in the middle, and boxes cut where half of their people are."""
