"""Columns in, order statistics out: nothing here knows an epsilon.

Whatever reads records lives here: columns of every library, times as steps, keys, tables and the
tasks of their engines, passes and what they are asked, lattices, priors and dither; and what is
then known of the records: order statistics, cells, and counts of bins and of leaves. Which output
they give is decided in `laws`, what that may cost in `privacy`.
"""
