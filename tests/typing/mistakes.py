"""Mistakes that `mypy --strict` finds, one in each line that says so."""

import ahead_ldp

estimate = ahead_ldp.simulat([1, 2], "age=integer,0,9", epsilon=1)  # mistake: the name of a function
estimate = ahead_ldp.simulate([1, 2], "age=integer,0,9", epsilon=[1])  # mistake: a list as epsilon
estimate = ahead_ldp.simulate([1, 2], "age=integer,0,9", epsilon=1, method=3)  # mistake: a number as a method
estimate = ahead_ldp.simulate([1, 2], "age=integer,0,9", epsilon=1)
answers = estimate.ask("age > 3", snap="up")  # mistake: no such way to snap
print(answers.shares)  # mistake: the name of a column
answers.to_frame("excel")  # mistake: no such library
answers.interval("0.95")  # mistake: a text as a level
answers.interval(kind="exact")  # mistake: no such kind
estimate.quantile("age")  # mistake: the name of a method
estimate.by("age").means("age")  # mistake: the name of a method of groups
count: int = answers["age > 3"].share  # mistake: a share is no whole number
