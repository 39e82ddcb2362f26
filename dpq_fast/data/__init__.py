"""Columns in, order statistics out: nothing here knows an epsilon."""
