"""How far the default for one attribute is from what is possible: docs/limit.md."""
