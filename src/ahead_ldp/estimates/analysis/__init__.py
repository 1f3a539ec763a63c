"""What people ask beyond shares: spread and inequality, differences, groups, weights, rounds (docs/analysis.md)."""
