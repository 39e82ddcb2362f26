"""Paths outside of narrow windows, csrc/stray.h."""

import numpy as np

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
    dpq_stray_borders,
    dpq_stray_cells,
    dpq_stray_intervals,
    dpq_stray_levels,
    dpq_stray_log,
    dpq_stray_problem,
    dpq_stray_ranks,
    int64_t,
    size_t,
)
from numpy cimport NPY_INT64, PyArray_TYPE, import_array, ndarray

import_array()

# How many nats a cell is wide at most.
WIDEST = DPQ_STRAY_WIDEST


def cells(int64_t window, int64_t reach, double rate, Py_ssize_t m, double share):
    """How many cells of one side are inside of a narrow window, and where all of them start.

    Those outside lose the part `share` of what a path pays to be there.
    """
    cdef:
        size_t inside
        ndarray start

    if not (0 <= window <= reach and rate > 0.0 and m > 0 and share >= 0.0):
        raise ValueError("a window must be within reach, and the rate positive")
    start = new_integers(dpq_stray_cells(window, reach, rate, m, share, &inside, NULL) + 1)
    dpq_stray_cells(window, reach, rate, m, share, &inside, integers(start))
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
        From `cells`, for the widest window.
    window : ndarray of int64, shape (m,), optional
        Of each level, at least 0: cells inside of this are; by default all of them.
    """

    cdef:
        dpq_stray_problem problem
        int64_t n
        size_t done  # levels
        int64_t power
        ndarray work
        list kept

    def __cinit__(self, ndarray q not None, int64_t n, double rate, Py_ssize_t inside,
                  ndarray start not None, ndarray window=None):
        cdef:
            Py_ssize_t m = q.shape[0], bounds = start.shape[0]
            ndarray whole = new_integers(m)
            ndarray part = new_doubles(m)

        if not (m > 0 and 0 < inside < bounds):
            raise ValueError("there must be levels, and some cells inside")
        if window is None:
            window = np.full(m, start[inside] - 1)
        if window.shape[0] != m or not (window >= 0).all():
            raise ValueError("each level needs a window")
        self.n = n
        self.work = new_doubles(28 * (bounds - 1))
        self.problem.window = given_integers(window)
        self.kept = [whole, part, start, window]
        self.problem.levels = m
        self.problem.rate = rate
        self.problem.cells, self.problem.inside = bounds - 1, inside
        self.problem.start = given_integers(start)
        dpq_scan_targets(m, given_doubles(q), n, integers(whole), doubles(part))
        self.problem.whole, self.problem.part = integers(whole), doubles(part)

    cdef int check(self, Py_ssize_t levels) except -1:
        if not (levels > 0 and self.done + levels <= self.problem.levels):
            raise ValueError("levels must be some, and no more than are left")
        return 0

    def add(self, Py_ssize_t levels, ndarray rank not None, ndarray width not None,
            ndarray left not None):
        """The next `levels`, by all intervals that are in their cells, ascending."""
        cdef:
            size_t first = self.done
            double *room = doubles(self.work)
            dpq_stray_intervals intervals

        self.check(levels)
        if not (width.shape[0] == left.shape[0] == rank.shape[0]):
            raise ValueError("rank, width and left must be of one length")
        intervals.intervals = rank.shape[0]
        intervals.rank, intervals.width = given_integers(rank), given_doubles(width)
        intervals.points, intervals.numbers = NULL, NULL
        if PyArray_TYPE(left) == NPY_INT64:
            intervals.points = given_integers(left)
        else:
            intervals.numbers = given_doubles(left)
        with nogil:
            dpq_stray_levels(&self.problem, &intervals, NULL, first, first + levels, room,
                             &self.power)
        self.done += levels

    def ranks(self):
        """Ranks that the next level's cells begin and end at, ascending: 0 to n + 1."""
        cdef ndarray rank = new_integers(2 * self.problem.cells)

        self.check(1)
        dpq_stray_ranks(&self.problem, self.n, self.done, integers(rank))
        return rank

    def add_borders(self, ndarray border not None):
        """The next level, by the records x_r of its `ranks`; x_0 and x_{n+1} are the ends."""
        cdef:
            size_t j = self.done
            double *room = doubles(self.work)
            dpq_stray_borders borders

        self.check(1)
        if border.shape[0] != 2 * <Py_ssize_t>self.problem.cells:
            raise ValueError("each end of a cell needs a record")
        borders.points = borders.numbers = NULL
        if PyArray_TYPE(border) == NPY_INT64:
            borders.points = given_integers(border)
        else:
            borders.numbers = given_doubles(border)
        with nogil:
            dpq_stray_levels(&self.problem, NULL, &borders, j, j + 1, room, &self.power)
        self.done += 1

    cdef int check_done(self) except -1:
        if self.done < self.problem.levels:
            raise ValueError("all levels are to be added first")
        return 0

    @property
    def log_weight(self):
        """ln of it, once all levels are added."""
        self.check_done()
        return dpq_stray_log(&self.problem, doubles(self.work), self.power)
