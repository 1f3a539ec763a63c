"""A mechanism asks questions and is told tallies: its types, one driver of runs, and what is stored of one."""
