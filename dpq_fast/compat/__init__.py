"""The interfaces of other libraries, answered by our mechanisms.

One file for each library: its names, arguments, defaults and errors become ours, and our answers
its own. No mechanism, noise or formula lives here. A library is imported where it is used, not
before.
"""
