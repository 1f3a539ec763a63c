"""Norm-Sub as the paper tells it: negative entries to 0, the difference off the positive ones, and again."""


def norm_sub(x: list[float], total: float = 1.0) -> list[float]:
    while True:
        x = [max(v, 0.0) for v in x]
        positive = sum(v > 0 for v in x)
        shift = (sum(x) - total) / positive
        x = [v - shift if v > 0 else 0.0 for v in x]
        if all(v >= 0 for v in x):
            return x
