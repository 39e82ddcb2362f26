"""Benchmarks: asv-shaped classes by subject, and `run.py`, which prints the tables without asv."""
