"""NumPy arrays as kernels' memory, without the price of a memoryview or of `np.empty` each.

A module that makes arrays here calls `import_array` first.
"""

from numpy cimport (
    NPY_FLOAT32,
    NPY_FLOAT64,
    NPY_INT64,
    NPY_UINTP,
    PyArray_ISCARRAY_RO,
    PyArray_NDIM,
    PyArray_ITEMSIZE,
    PyArray_SimpleNew,
    PyArray_TYPE,
    PyTypeNum_ISBOOL,
    PyTypeNum_ISSIGNED,
    PyTypeNum_ISUNSIGNED,
    ndarray,
    npy_intp,
)
from dpq_fast._kernels.csrc cimport (
    DPQ_FLOAT32,
    DPQ_FLOAT64,
    DPQ_INT8,
    DPQ_INT16,
    DPQ_INT32,
    DPQ_INT64,
    DPQ_UINT8,
    DPQ_UINT16,
    DPQ_UINT32,
    DPQ_UINT64,
    dpq_column,
    int64_t,
    size_t,
)


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


cdef inline ndarray new_table(npy_intp rows, npy_intp columns, int kind):
    """An array of shape (rows, columns), not filled; `kind` is NumPy's number of a dtype."""
    cdef npy_intp[2] shape = [rows, columns]

    return PyArray_SimpleNew(2, shape, kind)


cdef inline int check_given(ndarray array, int dimensions, int kind) except -1:
    """Refuse what a kernel can not read as it stands, as a memoryview would."""
    if (PyArray_NDIM(array) != dimensions or PyArray_TYPE(array) != kind
            or not PyArray_ISCARRAY_RO(array)):
        raise ValueError("a kernel takes contiguous arrays of its own dtype and dimensions")
    return 0


cdef inline const double *given_doubles(ndarray array) except? NULL:
    """Data of an array that should be float64, of one dimension."""
    check_given(array, 1, NPY_FLOAT64)
    return <const double *>PyArray_DATA(array)


cdef inline const int64_t *given_integers(ndarray array) except? NULL:
    """Data of an array that should be int64, of one dimension."""
    check_given(array, 1, NPY_INT64)
    return <const int64_t *>PyArray_DATA(array)


cdef inline const size_t *given_places(ndarray array) except? NULL:
    """Data of an array that should be uintp, of one dimension."""
    check_given(array, 1, NPY_UINTP)
    return <const size_t *>PyArray_DATA(array)


cdef inline dpq_column given_column(ndarray array) except *:
    """Values of an array of one dimension in its own type, if a kernel reads it."""
    cdef:
        dpq_column column
        int kind = PyArray_TYPE(array), width = PyArray_ITEMSIZE(array)

    check_given(array, 1, kind)
    column.value = PyArray_DATA(array)
    if kind == NPY_FLOAT64:
        column.kind = DPQ_FLOAT64
    elif kind == NPY_FLOAT32:
        column.kind = DPQ_FLOAT32
    elif PyTypeNum_ISSIGNED(kind):
        column.kind = (DPQ_INT8 if width == 1 else DPQ_INT16 if width == 2 else
                       DPQ_INT32 if width == 4 else DPQ_INT64)
    elif PyTypeNum_ISUNSIGNED(kind) or PyTypeNum_ISBOOL(kind):
        column.kind = (DPQ_UINT8 if width == 1 else DPQ_UINT16 if width == 2 else
                       DPQ_UINT32 if width == 4 else DPQ_UINT64)
    else:
        raise ValueError("a kernel takes columns of integers, float32 or float64")
    return column


cdef inline double *doubles(ndarray array):
    """Data of a float64 array that the caller made C-contiguous."""
    return <double *>PyArray_DATA(array)


cdef inline int64_t *integers(ndarray array):
    """Data of an int64 array that the caller made C-contiguous."""
    return <int64_t *>PyArray_DATA(array)


cdef inline size_t *places(ndarray array):
    """Data of a uintp array that the caller made C-contiguous."""
    return <size_t *>PyArray_DATA(array)
