"""The compressed sample of csrc/intervals.h."""

import numpy as np

from dpq_fast._kernels.buffers cimport doubles, integers, places
from dpq_fast._kernels.csrc cimport (
    dpq_intervals_continuous,
    dpq_intervals_lattice,
    dpq_intervals_log_spans,
    dpq_intervals_probes,
    dpq_intervals_ranges,
    dpq_intervals_windows,
    int64_t,
    size_t,
)
from numpy cimport ndarray


cdef Py_ssize_t _checked_size(const int64_t[::1] first_rank, const int64_t[::1] count, int64_t n,
                              Py_ssize_t points) except -1:
    """Number of intervals of all segments, which `points` must fit."""
    cdef:
        Py_ssize_t s, segments = first_rank.shape[0], size = 0
        bint good = count.shape[0] == segments and segments > 0

    for s in range(segments if good else 0):
        good = good and count[s] >= 1 and 0 <= first_rank[s] <= n + 1 - count[s]
        size += count[s]
        points += (first_rank[s] == 0) + (first_rank[s] + count[s] == n + 1)
    if not good or points != size + segments:
        raise ValueError("each segment must have at least one interval and one more point")
    return size


def compress_lattice(const int64_t[::1] first_rank not None, const int64_t[::1] count not None,
                     int64_t n, int64_t before, int64_t after, const int64_t[::1] point not None):
    """Rank, width and left edge of the positive-width intervals between lattice points."""
    cdef:
        Py_ssize_t size = _checked_size(first_rank, count, n, point.shape[0])
        ndarray rank = np.empty(size, dtype=np.int64)
        ndarray width = np.empty(size)
        ndarray left = np.empty(size, dtype=np.int64)
        int64_t *ranks = integers(rank)
        double *widths = doubles(width)
        int64_t *lefts = integers(left)
        const int64_t *points = &point[0] if point.shape[0] else NULL
        Py_ssize_t kept

    with nogil:
        kept = dpq_intervals_lattice(first_rank.shape[0], &first_rank[0], &count[0], n, before,
                                     after, points, ranks, widths, lefts)
    if kept == size:
        return rank, width, left
    return rank[:kept], width[:kept], left[:kept]


def compress_continuous(const int64_t[::1] first_rank not None, const int64_t[::1] count not None,
                        int64_t n, double before, double after, const double[::1] point not None):
    """Rank, width and left edge of the positive-width intervals between numbers."""
    cdef:
        Py_ssize_t size = _checked_size(first_rank, count, n, point.shape[0])
        ndarray rank = np.empty(size, dtype=np.int64)
        ndarray width = np.empty(size)
        ndarray left = np.empty(size)
        int64_t *ranks = integers(rank)
        double *widths = doubles(width)
        double *lefts = doubles(left)
        const double *points = &point[0] if point.shape[0] else NULL
        Py_ssize_t kept

    with nogil:
        kept = dpq_intervals_continuous(first_rank.shape[0], &first_rank[0], &count[0], n, before,
                                        after, points, ranks, widths, lefts)
    if kept == size:
        return rank, width, left
    return rank[:kept], width[:kept], left[:kept]


def windows(const double[::1] q not None, int64_t n, int64_t window):
    """Ranks within `window` of the targets: ``(first, last)`` by level, and by disjoint segment."""
    cdef:
        size_t m = q.shape[0], segments
        ndarray rows = np.empty((4, m), dtype=np.int64)
        int64_t *out = integers(rows)

    with nogil:
        segments = dpq_intervals_windows(m, &q[0], n, window, out, out + m, out + 2 * m,
                                         out + 3 * m)
    return rows[0], rows[1], rows[2, :segments], rows[3, :segments]


def ranges(const int64_t[::1] first not None, const int64_t[::1] last not None,
           const int64_t[::1] rank not None):
    """Intervals lo[j] <= t < hi[j] that level j may use, or None if a level has none."""
    cdef:
        size_t m = first.shape[0]
        ndarray rows = np.empty((2, m), dtype=np.uintp)
        size_t *out = places(rows)
        int found

    if rank.shape[0] == 0:
        return None
    with nogil:
        found = dpq_intervals_ranges(m, &first[0], &last[0], rank.shape[0], &rank[0], out, out + m)
    return (rows[0], rows[1]) if found else None


def probes(const double[::1] q not None, int64_t n, const int64_t[::1] reach not None):
    """Places, from 0, of the order statistics `reach` below and above each target; n >= 1."""
    cdef:
        size_t m = q.shape[0]
        ndarray place = np.empty(2 * m, dtype=np.int64)
        int64_t *out = integers(place)

    with nogil:
        dpq_intervals_probes(m, &q[0], n, &reach[0], out)
    return place


def log_spans(const double[::1] value not None, double low, double high, double unit):
    """ln of the distances between value[j] and value[m + j] in units; -inf for none."""
    cdef:
        size_t m = value.shape[0] // 2
        ndarray log_span = np.empty(m)
        double *out = doubles(log_span)

    with nogil:
        dpq_intervals_log_spans(m, &value[0], low, high, unit, out)
    return log_span
