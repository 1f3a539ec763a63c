"""The default for one attribute: partitions of every scale, read with a smooth base measure and a shrinkage tree."""
