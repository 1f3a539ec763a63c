"""Speed and memory, measured beside other packages and published figures: ``python -m benchmarks``."""
