"""The law of ascending tuples of outputs, and every way to draw from it.

The law itself is `path`, which `ind_exp` and `approx_quantiles` draw from, too, one level at a
time, as `few` does where records are few. The other files here serve joint releases alone: rows of
ranks, proposals by cells, how wide these are, and what is drawn from. Such a choice decides the
cost of a draw, never its probability.
"""
