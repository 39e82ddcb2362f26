"""Order statistics of records, behind one interface: nothing here knows an epsilon.

`Order` says what laws ask of records in order: the intervals between them, where a rank lies, how
many are below a point. Each other file is one way to know it, or serves one: records sorted,
counted, selected from an unsorted column or an engine, weighed by a prior, dithered; and outputs in
blocks of them. Which output they give is decided in `laws`; how records are read, in `data`.
"""
