"""The compressed sample of csrc/intervals.h."""

import numpy as np

from dpq_fast._kernels.buffers cimport (
    doubles,
    given_doubles,
    given_integers,
    integers,
    new_doubles,
    new_integers,
    new_places,
    new_table,
    places,
)
from dpq_fast._kernels.csrc cimport (
    dpq_intervals_continuous,
    dpq_intervals_lattice,
    dpq_intervals_log_spans,
    dpq_intervals_probes,
    dpq_intervals_ranges,
    dpq_intervals_windows,
    dpq_intervals_windows_by_level,
    int64_t,
    size_t,
)
from numpy cimport NPY_FLOAT64, NPY_INT64, import_array, ndarray

import_array()

cdef enum:
    LARGE = 1 << 15  # intervals


cdef Py_ssize_t _checked_size(ndarray first_rank, ndarray count, int64_t n,
                              Py_ssize_t points) except -1:
    """Number of intervals of all segments, which `points` must fit."""
    cdef:
        const int64_t *first = given_integers(first_rank)
        const int64_t *ranks = given_integers(count)
        Py_ssize_t s, segments = first_rank.shape[0], size = 0
        bint good = count.shape[0] == segments and segments > 0

    for s in range(segments if good else 0):
        good = good and ranks[s] >= 1 and 0 <= first[s] <= n + 1 - ranks[s]
        size += ranks[s]
        points += (first[s] == 0) + (first[s] + ranks[s] == n + 1)
    if not good or points != size + segments:
        raise ValueError("each segment must have at least one interval and one more point")
    return size


cdef tuple new_intervals(Py_ssize_t size, int kind):
    """Ranks, widths and left edges, not filled; in one piece of memory where that is large.

    The system gives large pieces at a lower price.
    """
    cdef ndarray room

    if size < LARGE:
        left = new_integers(size) if kind == NPY_INT64 else new_doubles(size)
        return new_integers(size), new_doubles(size), left
    room = new_table(3, size, NPY_INT64)
    numbers = room.view(np.float64)
    return room[0], numbers[1], room[2] if kind == NPY_INT64 else numbers[2]


def compress_lattice(ndarray first_rank not None, ndarray count not None, int64_t n,
                     int64_t before, int64_t after, ndarray point not None):
    """Rank, width and left edge of the positive-width intervals between lattice points."""
    cdef:
        Py_ssize_t size = _checked_size(first_rank, count, n, point.shape[0])
        ndarray rank, width, left
        int64_t *ranks
        double *widths
        int64_t *lefts
        const int64_t *points = given_integers(point)
        size_t segments = first_rank.shape[0]
        const int64_t *firsts = integers(first_rank)
        const int64_t *counts = integers(count)
        Py_ssize_t kept

    rank, width, left = new_intervals(size, NPY_INT64)
    ranks, widths, lefts = integers(rank), doubles(width), integers(left)
    with nogil:
        kept = dpq_intervals_lattice(segments, firsts, counts, n, before, after, points, ranks,
                                     widths, lefts)
    if kept == size:
        return rank, width, left
    return rank[:kept], width[:kept], left[:kept]


def compress_continuous(ndarray first_rank not None, ndarray count not None, int64_t n,
                        double before, double after, ndarray point not None):
    """Rank, width and left edge of the positive-width intervals between numbers."""
    cdef:
        Py_ssize_t size = _checked_size(first_rank, count, n, point.shape[0])
        ndarray rank, width, left
        int64_t *ranks
        double *widths
        double *lefts
        const double *points = given_doubles(point)
        size_t segments = first_rank.shape[0]
        const int64_t *firsts = integers(first_rank)
        const int64_t *counts = integers(count)
        Py_ssize_t kept

    rank, width, left = new_intervals(size, NPY_FLOAT64)
    ranks, widths, lefts = integers(rank), doubles(width), doubles(left)
    with nogil:
        kept = dpq_intervals_continuous(segments, firsts, counts, n, before, after, points,
                                        ranks, widths, lefts)
    if kept == size:
        return rank, width, left
    return rank[:kept], width[:kept], left[:kept]


def windows(ndarray q not None, int64_t n, window):
    """Ranks within `window` of the targets: ``(first, last)`` by level, and by disjoint segment.

    One window for all, or one for each. Then ranks are more where they would not ascend.
    """
    cdef:
        size_t m = q.shape[0], segments
        const double *levels = given_doubles(q)
        ndarray first = new_integers(m)
        ndarray last = new_integers(m)
        ndarray segment = new_integers(m)
        ndarray count = new_integers(m)
        int64_t *firsts = integers(first)
        int64_t *lasts = integers(last)
        int64_t *begins = integers(segment)
        int64_t *counts = integers(count)
        const int64_t *each = NULL
        int64_t all_ = 0

    if isinstance(window, np.ndarray):
        if window.shape[0] != m:
            raise ValueError("each level needs a window")
        each = given_integers(window)
    else:
        all_ = window
    with nogil:
        if each != NULL:
            segments = dpq_intervals_windows_by_level(m, levels, n, each, firsts, lasts, begins,
                                                      counts)
        else:
            segments = dpq_intervals_windows(m, levels, n, all_, firsts, lasts, begins, counts)
    if segments == m:
        return first, last, segment, count
    return first, last, segment[:segments], count[:segments]


def windows_of_each(const double[::1] q not None, int64_t n, const int64_t[::1] window not None):
    """First rank, and number of ranks, within window[j] of target j: `windows` for each alone."""
    cdef:
        size_t m = q.shape[0], j
        ndarray segment = new_integers(m)
        ndarray count = new_integers(m)
        int64_t *begins = integers(segment)
        int64_t *counts = integers(count)
        int64_t first, last

    with nogil:
        for j in range(m):
            dpq_intervals_windows(1, &q[j], n, window[j], &first, &last, begins + j, counts + j)
    return segment, count


def records(ndarray first_rank not None, ndarray count not None, int64_t n, int64_t skipped):
    """Places (start, stop) of the records that bound the intervals of each segment.

    Places count from 0 in a sample of which `skipped` records come before these n.
    """
    cdef:
        const int64_t *first = given_integers(first_rank)
        const int64_t *ranks = given_integers(count)
        Py_ssize_t s
        list found = []

    for s in range(min(first_rank.shape[0], count.shape[0])):
        # interval i needs x_i and x_{i+1}; x_i is at place i - 1
        found.append((max(first[s] - 1, 0) + skipped, min(first[s] + ranks[s], n) + skipped))
    return found


def ranges(ndarray first not None, ndarray last not None, ndarray rank not None):
    """Intervals lo[j] <= t < hi[j] that level j may use, or None if a level has none."""
    cdef:
        size_t m = first.shape[0], size = rank.shape[0]
        const int64_t *firsts = given_integers(first)
        const int64_t *lasts = given_integers(last)
        const int64_t *ranks = given_integers(rank)
        ndarray lo = new_places(m)
        ndarray hi = new_places(m)
        size_t *los = places(lo)
        size_t *his = places(hi)
        int found

    if size == 0:
        return None
    with nogil:
        found = dpq_intervals_ranges(m, firsts, lasts, size, ranks, los, his)
    return (lo, hi) if found else None


def probes(const double[::1] q not None, int64_t n, const int64_t[::1] reach not None):
    """Places, from 0, of the order statistics `reach` below and above each target; n >= 1."""
    cdef:
        size_t m = q.shape[0]
        ndarray place = new_integers(2 * m)
        int64_t *out = integers(place)

    with nogil:
        dpq_intervals_probes(m, &q[0], n, &reach[0], out)
    return place


def log_spans(const double[::1] value not None, double low, double high, double unit):
    """ln of the distances between value[j] and value[m + j] in units; -inf for none."""
    cdef:
        size_t m = value.shape[0] // 2
        ndarray log_span = new_doubles(m)
        double *out = doubles(log_span)

    with nogil:
        dpq_intervals_log_spans(m, &value[0], low, high, unit, out)
    return log_span
