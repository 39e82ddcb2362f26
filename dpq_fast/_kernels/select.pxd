"""Maps to buckets as objects that other kernels read."""

from dpq_fast._kernels.csrc cimport dpq_select_map


cdef class Map:
    cdef:
        dpq_select_map map
        dict given
