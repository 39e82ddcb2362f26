"""Memory of fresh NumPy arrays, without the price of a memoryview each."""

from numpy cimport ndarray
from dpq_fast._kernels.csrc cimport int64_t, size_t


cdef extern from "numpy/ndarrayobject.h":
    void *PyArray_DATA(ndarray array)


cdef inline double *doubles(ndarray array):
    """Data of a float64 array that the caller made C-contiguous."""
    return <double *>PyArray_DATA(array)


cdef inline int64_t *integers(ndarray array):
    """Data of an int64 array that the caller made C-contiguous."""
    return <int64_t *>PyArray_DATA(array)


cdef inline size_t *places(ndarray array):
    """Data of a uintp array that the caller made C-contiguous."""
    return <size_t *>PyArray_DATA(array)
