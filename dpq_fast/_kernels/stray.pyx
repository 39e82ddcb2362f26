"""Paths outside of narrow windows, csrc/stray.h."""

from dpq_fast._kernels.buffers cimport (
    doubles,
    given_doubles,
    given_integers,
    integers,
    new_doubles,
    new_integers,
)
from dpq_fast._kernels.csrc cimport (
    DPQ_STRAY_WIDEST,
    dpq_scan_targets,
    dpq_stray_cells,
    dpq_stray_log,
    dpq_stray_problem,
    int64_t,
    size_t,
)
from numpy cimport NPY_INT64, PyArray_TYPE, import_array, ndarray

import_array()

# How many nats a cell is wide at most.
WIDEST = DPQ_STRAY_WIDEST


def cells(int64_t window, int64_t reach, double rate, Py_ssize_t m):
    """How many cells of one side are inside of a narrow window, and where all of them start."""
    cdef:
        size_t inside
        ndarray start

    if not (0 <= window <= reach and rate > 0.0 and m > 0):
        raise ValueError("a window must be within reach, and the rate positive")
    start = new_integers(dpq_stray_cells(window, reach, rate, m, &inside, NULL) + 1)
    dpq_stray_cells(window, reach, rate, m, &inside, integers(start))
    return inside, start


def log_strayed(ndarray rank not None, ndarray width not None, ndarray left not None,
                ndarray q not None, int64_t n, double rate, Py_ssize_t inside,
                ndarray start not None):
    """ln of at least the weight of all paths that leave the cells inside, but not all cells."""
    cdef:
        Py_ssize_t m = q.shape[0], intervals = rank.shape[0], bounds = start.shape[0]
        ndarray whole = new_integers(m)
        ndarray part = new_doubles(m)
        ndarray work
        double *room
        dpq_stray_problem problem
        double found

    if not (width.shape[0] == left.shape[0] == intervals > 0 and m > 0 and 0 < inside < bounds):
        raise ValueError("rank, width and left must be of one length, and some cells inside")
    work = new_doubles(15 * (bounds - 1))
    problem.intervals = intervals
    problem.rank = given_integers(rank)
    problem.width = given_doubles(width)
    problem.points, problem.numbers = NULL, NULL
    if PyArray_TYPE(left) == NPY_INT64:
        problem.points = given_integers(left)
    else:
        problem.numbers = given_doubles(left)
    problem.levels = m
    problem.whole = integers(whole)
    problem.part = doubles(part)
    problem.rate = rate
    problem.cells = bounds - 1
    problem.inside = inside
    problem.start = given_integers(start)
    dpq_scan_targets(m, given_doubles(q), n, integers(whole), doubles(part))
    room = doubles(work)
    with nogil:
        found = dpq_stray_log(&problem, room)
    return found
