"""Hypothesis draws the same examples in every run: a red test is red for everybody."""

from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None, database=None, max_examples=150)
settings.load_profile("fixed")
