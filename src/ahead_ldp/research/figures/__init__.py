"""Pictures and reports of the experiments."""
