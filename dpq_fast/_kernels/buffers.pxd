"""NumPy arrays as kernels' memory, without the price of a memoryview or of `np.empty` each.

A module that makes arrays here calls `import_array` first.
"""

from numpy cimport NPY_FLOAT64, NPY_INT64, NPY_UINTP, PyArray_SimpleNew, ndarray, npy_intp
from dpq_fast._kernels.csrc cimport int64_t, size_t


cdef extern from "numpy/ndarrayobject.h":
    void *PyArray_DATA(ndarray array)


cdef inline ndarray new_doubles(npy_intp n):
    """A float64 array of length n, not filled."""
    return PyArray_SimpleNew(1, &n, NPY_FLOAT64)


cdef inline ndarray new_integers(npy_intp n):
    """An int64 array of length n, not filled."""
    return PyArray_SimpleNew(1, &n, NPY_INT64)


cdef inline ndarray new_places(npy_intp n):
    """A uintp array of length n, not filled."""
    return PyArray_SimpleNew(1, &n, NPY_UINTP)


cdef inline double *doubles(ndarray array):
    """Data of a float64 array that the caller made C-contiguous."""
    return <double *>PyArray_DATA(array)


cdef inline int64_t *integers(ndarray array):
    """Data of an int64 array that the caller made C-contiguous."""
    return <int64_t *>PyArray_DATA(array)


cdef inline size_t *places(ndarray array):
    """Data of a uintp array that the caller made C-contiguous."""
    return <size_t *>PyArray_DATA(array)
