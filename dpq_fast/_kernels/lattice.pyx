"""Lattice encoding of csrc/lattice.h."""

import numpy as np

from dpq_fast._kernels.buffers cimport (
    doubles,
    given_column,
    given_doubles,
    given_integers,
    integers,
    new_doubles,
    new_integers,
)
from dpq_fast._kernels.csrc cimport (
    DPQ_FLOAT32,
    DPQ_FLOAT64,
    DPQ_UINT64,
    dpq_column,
    dpq_lattice_bisect,
    dpq_lattice_count,
    dpq_lattice_count_integers,
    dpq_lattice_decode,
    dpq_lattice_encode,
    dpq_lattice_has_missing,
    dpq_lattice_is_sorted,
    dpq_lattice_least,
    dpq_lattice_place,
    dpq_lattice_places,
    dpq_lattice_runs,
    dpq_lattice_ties,
    int64_t,
    size_t,
)
from numpy cimport (
    NPY_FLOAT64,
    PyArray_DIMS,
    PyArray_NDIM,
    PyArray_SimpleNew,
    PyArray_SIZE,
    import_array,
    ndarray,
)

import_array()

# Room for runs to begin with.
RUNS = 1024


def encode(ndarray value not None, double low, double high, double per_unit,
           double step, int64_t first, int64_t points):
    """Number of the lattice point nearest to each value, int64 of the same length."""
    cdef:
        size_t n = value.shape[0]
        const double *values = given_doubles(value)
        ndarray point = new_integers(n)
        int64_t *out = integers(point)

    with nogil:
        dpq_lattice_encode(n, values, low, high, per_unit, step, first, points, out)
    return point


def count(ndarray value not None, double low, double high, double per_unit,
          double step, int64_t first, int64_t points, int64_t[::1] total not None):
    """Add to `total`, of length points + 1, how many values are at each point; NaN comes last."""
    cdef:
        dpq_column column = given_column(value)
        size_t n = value.shape[0]

    if total.shape[0] != points + 1:
        raise ValueError("total must have one entry for each point, and one more")
    if n > 0:
        with nogil:
            dpq_lattice_count(n, &column, low, high, per_unit, step, first, points, &total[0])


def count_integers(ndarray value not None, int64_t first, int64_t points,
                   int64_t[::1] total not None):
    """Add to `total`, of length points + 1, how many integers, but uint64, are at each point."""
    cdef:
        dpq_column column = given_column(value)
        size_t n = value.shape[0]

    if column.kind in (DPQ_FLOAT32, DPQ_FLOAT64, DPQ_UINT64):
        raise ValueError("integers must be of a type that int64 holds")
    if total.shape[0] != points + 1:
        raise ValueError("total must have one entry for each point, and one more")
    if n > 0:
        with nogil:
            dpq_lattice_count_integers(n, &column, first, points, &total[0])


def bisect(ndarray value not None, double low, double high, double per_unit, double step,
           int64_t first, int64_t points, ndarray point not None, ndarray lo not None,
           ndarray hi not None):
    """How many of ascending values are at a lower lattice point than each of some, from lo to hi.

    The result is in `lo`; `hi` is overwritten, too.
    """
    cdef:
        dpq_column column = given_column(value)
        const int64_t *asked = given_integers(point)
        int64_t *least = <int64_t *>given_integers(lo)
        int64_t *most = <int64_t *>given_integers(hi)
        Py_ssize_t i, n = value.shape[0], size = point.shape[0]

    if not (lo.shape[0] == hi.shape[0] == size):
        raise ValueError("lo and hi must have one entry for each point")
    for i in range(size):
        if not 0 <= least[i] <= most[i] <= n:
            raise ValueError("lo and hi must be numbers of values, in order")
    with nogil:
        dpq_lattice_bisect(size, &column, low, high, per_unit, step, first, points, asked, least,
                           most)


def runs(ndarray value not None, double low, double high, double per_unit, double step,
         int64_t first, int64_t points, ndarray start not None, ndarray stop not None,
         ndarray size not None):
    """Runs of ascending values at one lattice point each, which hold one of some places, in order.

    These are the multiples of size[t] from start[t] on and below stop[t], t = 0, 1, ... Returns the
    points, and how many values are below each run and up to its end.
    """
    cdef:
        dpq_column column = given_column(value)
        size_t n = value.shape[0], room = RUNS, found = 0
        dpq_lattice_places places
        dpq_lattice_place at
        ndarray point = new_integers(room), below = new_integers(room), above = new_integers(room)
        int64_t *to
        int64_t *least
        int64_t *most
        Py_ssize_t t
        int64_t done = 0

    places.stretches = start.shape[0]
    places.low, places.high = given_integers(start), given_integers(stop)
    places.size = given_integers(size)
    if not start.shape[0] == stop.shape[0] == size.shape[0]:
        raise ValueError("stretches must have a start, a stop and a size each")
    for t in range(start.shape[0]):
        if not (done <= places.low[t] <= places.high[t] <= <int64_t>n and places.size[t] > 0):
            raise ValueError("stretches must be of the values, in order, and have a size")
        done = places.high[t]
    at.stretch, at.above = 0, 0
    while True:
        to, least, most = integers(point), integers(below), integers(above)
        with nogil:
            found += dpq_lattice_runs(n, &column, low, high, per_unit, step, first, points,
                                      &places, &at, room - found, to + found, least + found,
                                      most + found)
        if found < room:
            break
        room *= 2
        for array in (point, below, above):
            array.resize(room, refcheck=False)
    for array in (point, below, above):
        array.resize(found, refcheck=False)
    return point, below, above


def ties(ndarray value not None, double low, double high, double per_unit, double step,
         int64_t first, int64_t points, ndarray place not None):
    """Points of ascending values at some places, ascending; values below each point, and up to it."""
    cdef:
        dpq_column column = given_column(value)
        const int64_t *places = given_integers(place)
        size_t n = value.shape[0], asked = place.shape[0]
        ndarray point = new_integers(asked), below = new_integers(asked), above = new_integers(asked)
        int64_t *to = integers(point)
        int64_t *least = integers(below)
        int64_t *most = integers(above)
        int64_t at = 0
        size_t i

    for i in range(asked):
        if not at <= places[i] < <int64_t>n:
            raise ValueError("places must be of the values, in order")
        at = places[i]
    with nogil:
        dpq_lattice_ties(n, &column, low, high, per_unit, step, first, points, asked, places, to,
                         least, most)
    return point, below, above


def decode(point, double per_unit, double step, int64_t first):
    """The value of each lattice point, given by their number: float64 of the same shape."""
    cdef:
        ndarray points = np.asarray(point, dtype=np.int64, order="C")
        ndarray value = PyArray_SimpleNew(PyArray_NDIM(points), PyArray_DIMS(points), NPY_FLOAT64)

    dpq_lattice_decode(PyArray_SIZE(points), integers(points), per_unit, step, first,
                       doubles(value))
    return value


def least(ndarray point not None, double low, double high, double per_unit, double step,
          int64_t first, int64_t points):
    """The least number that is rounded to each point or above, float64 of the same length."""
    cdef:
        size_t n = point.shape[0]
        const int64_t *given = given_integers(point)
        ndarray value = new_doubles(n)
        double *out = doubles(value)

    with nogil:
        dpq_lattice_least(n, given, low, high, per_unit, step, first, points, out)
    return value


def is_sorted(ndarray value not None):
    """Whether the values ascend; False if a NaN is among two or more."""
    cdef:
        size_t n = value.shape[0]
        const double *values = given_doubles(value)
        bint sorted_ = True

    if n > 1:
        with nogil:
            sorted_ = dpq_lattice_is_sorted(n, values)
    return bool(sorted_)


def has_missing(ndarray value not None):
    """Whether a NaN is among the values."""
    cdef:
        size_t n = value.shape[0]
        const double *values = given_doubles(value)
        bint missing

    with nogil:
        missing = dpq_lattice_has_missing(n, values)
    return bool(missing)
