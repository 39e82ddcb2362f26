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
    dpq_stray_levels,
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


cdef class Strayed:
    """What paths weigh at most that leave the cells inside, but not all cells.

    Parameters
    ----------
    q : ndarray of float64, shape (m,)
        Levels, ascending.
    n : int
        Number of records.
    rate : float
        Loss of log-weight per rank.
    inside, start
        From `cells`.
    """

    cdef:
        dpq_stray_problem problem
        size_t done  # levels
        int64_t power
        ndarray work
        list kept

    def __cinit__(self, ndarray q not None, int64_t n, double rate, Py_ssize_t inside,
                  ndarray start not None):
        cdef:
            Py_ssize_t m = q.shape[0], bounds = start.shape[0]
            ndarray whole = new_integers(m)
            ndarray part = new_doubles(m)

        if not (m > 0 and 0 < inside < bounds):
            raise ValueError("there must be levels, and some cells inside")
        self.work = new_doubles(15 * (bounds - 1))
        self.kept = [whole, part, start]
        self.problem.levels = m
        self.problem.whole, self.problem.part = integers(whole), doubles(part)
        self.problem.rate = rate
        self.problem.cells, self.problem.inside = bounds - 1, inside
        self.problem.start = given_integers(start)
        dpq_scan_targets(m, given_doubles(q), n, integers(whole), doubles(part))

    def add(self, Py_ssize_t levels, ndarray rank not None, ndarray width not None,
            ndarray left not None):
        """The next `levels`, by all intervals that are in their cells, ascending."""
        cdef:
            size_t first = self.done, last = self.done + levels
            double *room = doubles(self.work)

        if not (levels > 0 and last <= self.problem.levels):
            raise ValueError("levels must be some, and no more than are left")
        if not (width.shape[0] == left.shape[0] == rank.shape[0]):
            raise ValueError("rank, width and left must be of one length")
        self.problem.intervals = rank.shape[0]
        self.problem.rank, self.problem.width = given_integers(rank), given_doubles(width)
        self.problem.points, self.problem.numbers = NULL, NULL
        if PyArray_TYPE(left) == NPY_INT64:
            self.problem.points = given_integers(left)
        else:
            self.problem.numbers = given_doubles(left)
        with nogil:
            dpq_stray_levels(&self.problem, first, last, room, &self.power)
        self.done = last

    @property
    def log_weight(self):
        """ln of it, once all levels are added."""
        if self.done < self.problem.levels:
            raise ValueError("all levels are to be added first")
        return dpq_stray_log(&self.problem, doubles(self.work), self.power)
