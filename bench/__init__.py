"""Benchmarks: `joint_exp`, `quantiles`, `counts`, `programs` and `errors` hold rows, `run` a loop.

A new comparison is one more `Case` in the list of its subject.
"""
