"""Offsets as an object that other kernels read."""

from dpq_fast._kernels.csrc cimport dpq_dither


cdef class Offsets:
    cdef dpq_dither dither
