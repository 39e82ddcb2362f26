"""Columns in, orders, counts and sums out: nothing here knows an epsilon.

Whatever reads records lives here: columns of every library, times as steps, keys, tables and the
tasks of their engines, passes and what they are asked, lattices and priors; and counts of bins and
of leaves. What is known of records in order is in `orders`; `sample` alone makes these. Which
output they give is decided in `laws`, what that may cost in `privacy`.
"""
