"""Status codes as exceptions: every kernel call that returns one goes through `check`."""

from dpq_fast._kernels.csrc cimport dpq_status

cdef int check(dpq_status status) except -1
