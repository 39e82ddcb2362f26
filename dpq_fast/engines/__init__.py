"""Engines: what holds the rows of a table, and how each makes a pass over them.

One file for each kind of place, with `opened`, and what several of them share. Those in this
process, and the clusters, run a task on each part of the rows and combine its states. Data bases
answer it in SQL. Nothing here decides what is asked, or knows what it is for.
"""
