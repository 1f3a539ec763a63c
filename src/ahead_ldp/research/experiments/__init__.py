"""The experiments of the paper as data, and how they are run and judged."""
