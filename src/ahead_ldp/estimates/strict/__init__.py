"""Intervals that hold whatever the data: bounds from the reports alone (docs/derivations/strict.md)."""
