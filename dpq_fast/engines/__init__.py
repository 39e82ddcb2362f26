"""Engines: what holds the rows of a table, and how each makes a pass over them.

Those in this process, and the clusters, run a task on each part of the rows and combine its states.
Data bases answer it in SQL.
"""
