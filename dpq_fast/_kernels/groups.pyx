"""Releases of many small groups, csrc/groups.h."""

import numpy as np

from dpq_fast._kernels.bitgen cimport bitgen_of
from dpq_fast._kernels.buffers cimport doubles, integers, places
from dpq_fast._kernels.csrc cimport (
    DPQ_ERR_RANGE,
    DPQ_GROUPS_CHUNK,
    DPQ_OK,
    DPQ_PATH_BLOCK,
    dpq_decay,
    dpq_groups_count,
    dpq_groups_flip,
    dpq_groups_keys,
    dpq_groups_law,
    dpq_groups_order,
    dpq_groups_release,
    dpq_groups_room,
    dpq_groups_scatter,
    dpq_groups_sort,
    dpq_groups_work,
    dpq_scan_level,
    dpq_status,
    int64_t,
    size_t,
)
from dpq_fast._kernels.status cimport check
from libc.stdint cimport int8_t, int16_t, int32_t, uint8_t, uint16_t, uint32_t
from numpy cimport ndarray
from numpy.random cimport bitgen_t

# Groups of one chunk; see csrc/groups.h.
CHUNK = int(DPQ_GROUPS_CHUNK)

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
    """

    cdef:
        dpq_groups_keys keys
        object table
        readonly int64_t groups
        readonly int64_t chunks

    def __init__(self, int64_t groups, int64_t lowest, const int32_t[::1] table):
        self.groups = groups
        self.chunks = (groups + CHUNK - 1) // CHUNK
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


def sort(const int64_t[::1] point not None):
    """Points in ascending order, int64."""
    cdef:
        size_t n = point.shape[0], i
        size_t room = dpq_groups_room(n)
        int64_t[:, ::1] work = np.empty((2, room + 1), dtype=np.int64)
        int64_t *ordered
        int64_t[::1] out = np.empty(n, dtype=np.int64)

    with nogil:
        for i in range(n):
            work[0, i] = point[i]
        ordered = dpq_groups_sort(n, &work[0, 0], &work[1, 0])
        for i in range(n):
            out[i] = ordered[i]
    return out.base


cdef class Releases:
    """One law for all groups: levels, rate, bounds and lattice.

    Parameters
    ----------
    q : ndarray of float64, shape (m,)
        Distinct ascending levels.
    rate : float
        Loss of log-weight per rank, c > 0.
    bounds : (float, float)
    lattice : Lattice or None
    """

    cdef:
        dpq_groups_law law
        object q

    def __init__(self, const double[::1] q not None, double rate, tuple bounds, lattice):
        self.q = q.base
        self.law.levels = q.shape[0]
        self.law.q = &q[0]
        self.law.rate = rate
        self.law.low, self.law.high = bounds
        self.law.lattice = lattice is not None
        if lattice is not None:
            self.law.per_unit = lattice.per_unit
            self.law.step = lattice.step
            self.law.first = lattice.first
            self.law.points = lattice.points
            self.law.bits = lattice.bits

    def run(self, const int64_t[::1] start not None, const double[::1] value not None, size_t next,
            size_t stop, ndarray answers not None, rng not None):
        """Release the groups next, ..., stop - 1 into rows of `answers`, shape (groups, m).

        `start` and `value` are as from `order`, `answers` is int64 for a lattice, else float64.
        Returns (stop, None), or where float64 will not do (group, its sorted points).
        """
        cdef:
            size_t m = self.law.levels, n = 0, g, room, race
            size_t decay_size = (sizeof(dpq_decay) + 7) // 8
            size_t level_size = (sizeof(dpq_scan_level) + 7) // 8
            int64_t *out = integers(answers)
            bint lattice = self.law.lattice
            dpq_groups_work work
            ndarray counted, weighed, indexed
            int64_t *integer
            double *real
            size_t *index
            object bit_generator = rng.bit_generator
            bitgen_t *bits = bitgen_of(bit_generator)
            dpq_status status

        for g in range(next, stop):
            n = max(n, <size_t>(start[g + 1] - start[g]))
        room = dpq_groups_room(n) + 1
        race = n + (n + 1) // DPQ_PATH_BLOCK + m + 3
        counted = np.empty(2 * room + 2 * (n + 1) + 2 * m, dtype=np.int64)
        weighed = np.empty(3 * (n + 1) + 2 * m * (n + 1) + race + m + decay_size
                           + m * level_size)
        indexed = np.empty(4 * m, dtype=np.uintp)
        integer, real, index = integers(counted), doubles(weighed), places(indexed)
        work.point = integer
        work.spare = work.point + room
        work.rank = work.spare + room
        work.left = work.rank + n + 1
        work.exponent = work.left + n + 1
        work.whole = work.exponent + m
        work.width = real
        work.number = work.width + n + 1
        work.edge = work.number + n + 1
        work.A = work.edge + n + 1
        work.H = work.A + m * (n + 1)
        work.race = work.H + m * (n + 1)
        work.part = work.race + race
        work.decay = <dpq_decay *>(work.part + m)
        work.level = <dpq_scan_level *>(work.part + m + decay_size)
        work.lo = index
        work.hi = work.lo + m
        work.row = work.hi + m
        work.path = work.row + m
        with bit_generator.lock, nogil:
            status = dpq_groups_release(&self.law, stop, &start[0],
                                        &value[0] if value.shape[0] else NULL, &work, bits, &next,
                                        out if lattice else NULL,
                                        NULL if lattice else <double *>out)
        if status == DPQ_ERR_RANGE:
            n = start[next + 1] - start[next]
            g = 0 if lattice else <size_t>(work.number - real)
            return next, (counted if lattice else weighed)[g:g + n].copy()
        check(status)
        return next, None

    def flip(self, const int64_t[::1] start not None, const double[::1] value not None,
             size_t next, size_t stop, ndarray answers not None, rng not None):
        """Release the groups next, ..., stop - 1 into rows of `answers`, int64 of shape (groups, 1).

        By permute-and-flip, for one level and a lattice without dither; `start` and `value` are as
        from `order`.
        """
        cdef:
            size_t n = 0, g, room
            int64_t *point = integers(answers)
            dpq_groups_work work
            ndarray counted, weighed
            object bit_generator = rng.bit_generator
            bitgen_t *bits = bitgen_of(bit_generator)

        if not self.law.lattice or self.law.bits > 0 or self.law.levels != 1:
            raise ValueError("flips are for one level and a lattice without dither")
        for g in range(next, stop):
            n = max(n, <size_t>(start[g + 1] - start[g]))
        room = dpq_groups_room(n) + 1
        counted = np.empty(2 * room + 2 * (n + 1) + 1, dtype=np.int64)
        weighed = np.empty(n + 2)
        work.point = integers(counted)
        work.spare = work.point + room
        work.rank = work.spare + room
        work.left = work.rank + n + 1
        work.whole = work.left + n + 1
        work.width = doubles(weighed)
        work.part = work.width + n + 1
        with bit_generator.lock, nogil:
            dpq_groups_flip(&self.law, next, stop, &start[0], &value[0] if value.shape[0] else NULL,
                            &work, bits, point)
