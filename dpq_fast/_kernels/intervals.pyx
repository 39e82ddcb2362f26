"""The compressed sample of csrc/intervals.h."""

import numpy as np

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


cdef int _check_sizes(const int64_t[::1] first_rank, const int64_t[::1] count,
                      size_t room) except -1:
    cdef:
        Py_ssize_t s
        size_t total = 0
        bint good = count.shape[0] == first_rank.shape[0] > 0

    for s in range(count.shape[0]):
        good = good and count[s] >= 1
        total += <size_t>count[s]
    if not good or total != room:
        raise ValueError("each segment must have count >= 1 intervals and one more point")
    return 0


def compress_lattice(const int64_t[::1] first_rank not None, const int64_t[::1] count not None,
                     const int64_t[::1] point not None):
    """Rank, width and left edge of the positive-width intervals between lattice points."""
    cdef:
        size_t segments = first_rank.shape[0]
        size_t room = point.shape[0] - segments
        int64_t[::1] rank = np.empty(room, dtype=np.int64)
        double[::1] width = np.empty(room)
        int64_t[::1] left = np.empty(room, dtype=np.int64)
        size_t kept

    _check_sizes(first_rank, count, room)
    with nogil:
        kept = dpq_intervals_lattice(segments, &first_rank[0], &count[0], &point[0], &rank[0],
                                     &width[0], &left[0])
    return rank.base[:kept], width.base[:kept], left.base[:kept]


def compress_continuous(const int64_t[::1] first_rank not None, const int64_t[::1] count not None,
                        const double[::1] point not None):
    """Rank, width and left edge of the positive-width intervals between numbers."""
    cdef:
        size_t segments = first_rank.shape[0]
        size_t room = point.shape[0] - segments
        int64_t[::1] rank = np.empty(room, dtype=np.int64)
        double[::1] width = np.empty(room)
        double[::1] left = np.empty(room)
        size_t kept

    _check_sizes(first_rank, count, room)
    with nogil:
        kept = dpq_intervals_continuous(segments, &first_rank[0], &count[0], &point[0], &rank[0],
                                        &width[0], &left[0])
    return rank.base[:kept], width.base[:kept], left.base[:kept]


def windows(const double[::1] q not None, int64_t n, int64_t window):
    """Ranks within `window` of the targets: ``(first, last)`` by level, and by disjoint segment."""
    cdef:
        size_t m = q.shape[0], segments
        int64_t[:, ::1] out = np.empty((4, m), dtype=np.int64)

    with nogil:
        segments = dpq_intervals_windows(m, &q[0], n, window, &out[0, 0], &out[1, 0], &out[2, 0],
                                         &out[3, 0])
    rows = out.base
    return rows[0], rows[1], rows[2, :segments], rows[3, :segments]


def ranges(const int64_t[::1] first not None, const int64_t[::1] last not None,
           const int64_t[::1] rank not None):
    """Intervals lo[j] <= t < hi[j] that level j may use, or None if a level has none."""
    cdef:
        size_t m = first.shape[0], intervals = rank.shape[0]
        size_t[:, ::1] out = np.empty((2, m), dtype=np.uintp)
        int found

    if intervals == 0:
        return None
    with nogil:
        found = dpq_intervals_ranges(m, &first[0], &last[0], intervals, &rank[0], &out[0, 0],
                                     &out[1, 0])
    return (out.base[0], out.base[1]) if found else None


def probes(const double[::1] q not None, int64_t n, const int64_t[::1] reach not None):
    """Places, from 0, of the order statistics `reach` below and above each target; n >= 1."""
    cdef:
        size_t m = q.shape[0]
        int64_t[::1] place = np.empty(2 * m, dtype=np.int64)

    with nogil:
        dpq_intervals_probes(m, &q[0], n, &reach[0], &place[0])
    return place.base


def log_spans(const double[::1] value not None, double low, double high, double unit):
    """ln of the distances between value[j] and value[m + j] in units; -inf for none."""
    cdef:
        size_t m = value.shape[0] // 2
        double[::1] log_span = np.empty(m)

    with nogil:
        dpq_intervals_log_spans(m, &value[0], low, high, unit, &log_span[0])
    return log_span.base
