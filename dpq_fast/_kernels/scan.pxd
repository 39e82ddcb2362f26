"""The forward pass as an object that other kernels read."""

from dpq_fast._kernels.csrc cimport (
    dpq_decay,
    dpq_path_rows,
    dpq_scan_level,
    dpq_scan_problem,
    size_t,
)
from numpy cimport ndarray


cdef class Scan:
    cdef:
        dpq_scan_problem problem
        dpq_path_rows rows
        dpq_decay *decay
        dpq_scan_level *level
        size_t longest      # entries of the longest row
        size_t entries      # entries of all rows
        tuple inputs        # the other arrays that the pointers above point into
        readonly object A, H, exponent, blocks  # the rows, and powers of two of either kind
        ndarray begin, begins  # where blocks begin, and whether one does at an interval
        readonly object rank, lo, hi, whole, part
        readonly double rate
        readonly double log_total

    cdef _forward_as_first_of(self, kinds)
    cdef _new_rows(self, int kind, ndarray known)
