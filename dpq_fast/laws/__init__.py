"""Exact output laws, and how they are drawn from."""
