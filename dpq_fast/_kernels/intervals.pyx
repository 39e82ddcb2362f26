"""The compressed sample of csrc/intervals.h."""

import numpy as np

from dpq_fast._kernels.csrc cimport (
    dpq_intervals_continuous,
    dpq_intervals_lattice,
    int64_t,
    size_t,
)


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

    with nogil:
        kept = dpq_intervals_continuous(segments, &first_rank[0], &count[0], &point[0], &rank[0],
                                        &width[0], &left[0])
    return rank.base[:kept], width.base[:kept], left.base[:kept]
