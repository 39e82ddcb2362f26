"""The rows of each of many groups put together, csrc/groups_scatter.h."""

import numpy as np

from dpq_fast._kernels.buffers cimport doubles, integers
from dpq_fast._kernels.csrc cimport (
    DPQ_GROUPS_MOST,
    dpq_groups_count,
    dpq_groups_keys,
    dpq_groups_order,
    dpq_groups_scatter,
    int64_t,
    size_t,
)
from libc.stdint cimport int8_t, int16_t, int32_t, uint8_t, uint16_t, uint32_t
from numpy cimport import_array, ndarray

import_array()

# Groups of one chunk at most; see csrc/groups_scatter.h.
CHUNK = 1 << int(DPQ_GROUPS_MOST)
# Chunks of few groups are smaller: there are about so many, which threads share.
SHARED_CHUNKS = 8

cdef enum:
    WIDENED = 1024  # keys at a time, which stay in the cache

ctypedef fused key_t:
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t
    uint16_t
    uint32_t


cdef inline const int64_t *widened(const key_t *key, size_t n, int64_t *room) noexcept nogil:
    """Keys as int64: themselves, or in `room`."""
    cdef size_t i

    if key_t is int64_t:
        return key
    else:
        for i in range(n):
            room[i] = key[i]
        return room


cdef class Keys:
    """Which group each integer key stands for: entry ``key - lowest`` of a table.

    Parameters
    ----------
    groups : int
        Number of groups.
    lowest : int
        The key of entry 0.
    table : ndarray of int32, or None
        Group of each entry, negative for none, below `groups`; None if entry g is group g.

    Attributes
    ----------
    chunk, chunks : int
        Groups of each chunk but the last, and how many chunks there are: by `groups` alone.
    """

    cdef:
        dpq_groups_keys keys
        object table
        readonly int64_t groups
        readonly int64_t chunk
        readonly int64_t chunks

    def __init__(self, int64_t groups, int64_t lowest, const int32_t[::1] table):
        cdef int shift = DPQ_GROUPS_MOST

        while shift > 0 and groups <= SHARED_CHUNKS << (shift - 1):
            shift -= 1
        self.groups = groups
        self.chunk = 1 << shift
        self.chunks = (groups + self.chunk - 1) // self.chunk
        self.keys.shift = shift
        self.keys.lowest = lowest
        self.keys.table = NULL
        self.keys.span = groups
        if table is not None:
            self.table = table.base
            self.keys.span = table.shape[0]
            self.keys.table = &table[0] if table.shape[0] else NULL

    def count(self, const key_t[::1] key not None):
        """Rows of each chunk of groups, int64 of shape (chunks,)."""
        cdef:
            size_t n = key.shape[0], i = 0, rows
            ndarray counts = np.zeros(self.chunks, dtype=np.int64)
            int64_t *count = integers(counts)
            int64_t[WIDENED] room

        with nogil:
            while i < n:
                rows = min(n - i, <size_t>WIDENED)
                dpq_groups_count(&self.keys, rows, widened(&key[i], rows, &room[0]), count)
                i += rows
        return counts

    def scatter(self, const key_t[::1] key not None, const double[::1] value not None,
                int64_t[::1] place not None, const int64_t[::1] end not None,
                double[::1] grouped not None, uint16_t[::1] member not None):
        """Put rows into `grouped` and `member`, from `place` to `end` of each chunk; how many NaN.

        `key` and `value` have one length, `place` and `end` one entry per chunk, and `end` is
        within `grouped` and `member`.
        """
        cdef:
            size_t n = key.shape[0] if grouped.shape[0] > 0 else 0, i = 0, rows
            int64_t missing = 0
            int64_t[WIDENED] room

        with nogil:
            while i < n:
                rows = min(n - i, <size_t>WIDENED)
                missing += dpq_groups_scatter(&self.keys, rows, widened(&key[i], rows, &room[0]),
                                              &value[i], &place[0], &end[0], &grouped[0],
                                              &member[0])
                i += rows
        return missing


def order(const double[::1] value not None, const uint16_t[::1] member not None, size_t groups):
    """Rows of one chunk put together by group, without NaN: (start, ordered)."""
    cdef:
        size_t n = value.shape[0]
        ndarray starts = np.empty(groups + 1, dtype=np.int64)
        ndarray room = np.empty(n)
        int64_t *start = integers(starts)
        double *ordered = doubles(room)

    with nogil:
        dpq_groups_order(n, &value[0] if n else NULL, &member[0] if n else NULL, groups, start,
                         ordered)
    return starts, room
