"""Exact output laws, and how they are drawn from.

A law is made of rates and of order statistics or counts, and has ``log_prob(o)`` and
``sample(rng, size)``: releases, tests and audits use the same one. What makes draws fast lives
here, too, where it changes no probability; `joint` is the law of tuples of outputs. Nothing here
charges an accountant, or knows which library a column is of.
"""
