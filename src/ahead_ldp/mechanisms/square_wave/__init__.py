"""The square wave, read by expectation maximisation."""
