"""Batch at any scale: reports in files, counted where they lie, on one machine or on Spark."""
