"""Values in order at some places, csrc/arrange.h."""

import numpy as np

from dpq_fast._kernels.buffers cimport (
    doubles,
    given_doubles,
    integers,
    new_doubles,
    new_places,
    places,
)
from dpq_fast._kernels.csrc cimport (
    dpq_arrange_add_below,
    dpq_arrange_below,
    dpq_arrange_below_inside,
    dpq_arrange_bins,
    dpq_arrange_count,
    dpq_arrange_finish,
    dpq_arrange_move,
    dpq_arrange_numbers,
    dpq_arrange_plan,
    dpq_arrange_refine,
    dpq_arrange_share,
    dpq_arrange_windows,
    int64_t,
    size_t,
    uint8_t,
    uint32_t,
)
from dpq_fast._kernels.select cimport Map
from libc.float cimport DBL_MAX
from numpy cimport import_array, ndarray

import_array()


cdef dpq_arrange_windows windows_of(const int64_t[::1] start, const int64_t[::1] stop) except *:
    cdef dpq_arrange_windows windows

    if start.shape[0] != stop.shape[0]:
        raise ValueError("start and stop must have one entry for each window")
    windows.windows = start.shape[0]
    windows.start = &start[0] if start.shape[0] else NULL
    windows.stop = &stop[0] if start.shape[0] else NULL
    return windows


cdef class Arranging:
    """Values that are put in order at the places ``start[w] <= place < stop[w]`` of some windows.

    What is before a window is no larger than what is in it, and what is after no smaller, in any
    order; or it may be anything, if not ``all`` have to be there. Windows ascend and do not
    overlap. No value is NaN, and all are in the buckets that are ``wanted``, not 0.

    Several threads may take a share of the values each, one step after another: all shares are
    counted, then `plan`, all are moved, and all `parts` of the bins finished.
    """

    cdef:
        dpq_arrange_bins into
        dpq_arrange_windows asked
        size_t bins, most
        list kept
        size_t[::1] cursor
        uint32_t[::1] to
        readonly ndarray values  # once all is finished

    def __init__(self, Map where not None, const uint8_t[::1] wanted not None, size_t n,
                 const int64_t[::1] start not None, const int64_t[::1] stop not None):
        cdef:
            Py_ssize_t b, buckets = where.map.buckets
            ndarray slots
            uint32_t[::1] slot

        if wanted.shape[0] != buckets + 1:
            raise ValueError("wanted must have one entry for each bucket, and one more")
        self.asked = windows_of(start, stop)
        slots = np.empty(buckets, dtype=np.uint32)
        slot = slots
        self.bins = 0
        for b in range(buckets):
            slot[b] = <uint32_t>self.bins
            self.bins += wanted[b] != 0
        self.bins += 1  # for what should not be there: nothing is written elsewhere
        self.into.map, self.into.bits, self.into.slot = where.map, 0, &slot[0]
        self.bins = dpq_arrange_refine(&self.into, self.bins, n)
        self.kept = [slots, start, stop]
        self.values = np.empty(n)

    def count(self, list values not None):
        """How many of a share's values are in each bin."""
        cdef:
            ndarray piece, counts = np.zeros(self.bins, dtype=np.uintp)
            size_t[::1] count = counts
            const double *value
            size_t size

        for piece in values:
            value, size = given_doubles(piece), piece.shape[0]
            with nogil:
                dpq_arrange_count(&self.into, size, value, &count[0])
        return counts

    def plan(self, list counts not None, bint all):
        """Where each share's values begin in each bin, by how many there are of them."""
        cdef:
            ndarray each, cursors = counts[0] if len(counts) == 1 else sum(counts)
            size_t[::1] count, own
            size_t total = cursors.sum()
            list shares = []

        if total != <size_t>self.values.shape[0]:
            raise ValueError("all values must be counted")
        self.cursor, self.to = cursors, np.empty(self.bins, dtype=np.uint32)
        self.most = dpq_arrange_plan(self.bins, &self.asked, all, &self.cursor[0], &self.to[0])
        if len(counts) == 1:
            return [cursors]
        for each in counts:
            count = each
            shares.append(np.empty(self.bins, dtype=np.uintp))
            own = shares[len(shares) - 1]
            dpq_arrange_share(self.bins, &self.to[0], &count[0], &self.cursor[0], &own[0])
        return shares

    def move(self, list values not None, size_t[::1] place not None):
        """Put a share's values where they belong, by its places, which go up."""
        cdef:
            ndarray piece
            double *out = doubles(self.values)
            const double *value
            size_t size

        if place.shape[0] != <Py_ssize_t>self.bins:
            raise ValueError("place must have one entry for each bin")
        for piece in values:
            value, size = given_doubles(piece), piece.shape[0]
            with nogil:
                dpq_arrange_move(&self.into, size, value, &place[0], &self.to[0], out)

    def finish(self, size_t part, size_t parts):
        """Put in order what windows meet of one of so many parts of the bins."""
        cdef:
            ndarray work = new_doubles(self.most)
            double *out = doubles(self.values)
            double *spare = doubles(work)
            size_t first = self.bins * part // parts, last = self.bins * (part + 1) // parts

        with nogil:
            dpq_arrange_finish(first, last, &self.asked, &self.cursor[0], &self.to[0], out, spare)


def ordered(ndarray value not None):
    """Numbers of a float64 array in ascending order, NaN last, as `np.sort` has them."""
    cdef:
        size_t n = value.shape[0]
        const double *number = given_doubles(value)
        int64_t first = 0, last = n
        ndarray found = new_doubles(n), spare = new_doubles(n), cursors = new_places(n + 1)
        ndarray targets = np.empty(n + 1, dtype=np.uint32)
        uint32_t[::1] to = targets
        size_t *cursor = places(cursors)
        double *work = doubles(spare)
        double *out = doubles(found)
        dpq_arrange_windows asked

    asked.windows, asked.start, asked.stop = 1, &first, &last
    with nogil:
        dpq_arrange_numbers(-DBL_MAX, DBL_MAX, n, number, &asked, cursor, &to[0], work,
                            out)
    return found


def below(const double[::1] arranged not None, const int64_t[::1] start not None,
          const int64_t[::1] stop not None, const double[::1] value not None, list given=None):
    """How many of what `arrange` gave are below each value.

    Windows are those that were asked for, none of them empty. What is not all there is to be
    ``given`` once more.
    """
    cdef:
        size_t n = arranged.shape[0], values = value.shape[0]
        ndarray found = np.zeros(values, dtype=np.int64), unknown, counts, piece
        int64_t *out = integers(found)
        int64_t *count
        const double *number
        const double *other
        size_t size, others
        dpq_arrange_windows asked = windows_of(start, stop)

    if values == 0 or n == 0:
        return found
    if given is None:
        with nogil:
            dpq_arrange_below(&asked, n, &arranged[0], values, &value[0], out)
        return found
    with nogil:
        dpq_arrange_below_inside(&asked, n, &arranged[0], values, &value[0], out)
    at = np.flatnonzero(found < 0)
    unknown, counts, others = np.asarray(value)[at], np.zeros(at.size, dtype=np.int64), at.size
    other, count = given_doubles(unknown), integers(counts)
    for piece in given if others else ():
        number, size = given_doubles(piece), piece.shape[0]
        with nogil:
            dpq_arrange_add_below(size, number, others, other, count)
    found[at] = counts
    return found
