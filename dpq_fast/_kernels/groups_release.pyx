"""Releases of many small groups, csrc/groups_release.h."""

import numpy as np

from dpq_fast._kernels.bitgen cimport bitgen_of
from dpq_fast._kernels.buffers cimport (
    doubles,
    given_doubles,
    given_integers,
    integers,
    new_doubles,
    new_integers,
)
from dpq_fast._kernels.csrc cimport (
    DPQ_ERR_RANGE,
    DPQ_LANES,
    DPQ_LANES_LIGHT,
    DPQ_LANES_MOST,
    DPQ_OK,
    DPQ_PATH_BLOCK,
    dpq_decay,
    dpq_groups_flip,
    dpq_groups_flip_one,
    dpq_groups_law,
    dpq_groups_release,
    dpq_groups_release_one,
    dpq_groups_room,
    dpq_groups_sort,
    dpq_groups_windows,
    dpq_groups_work,
    dpq_lattice_decode,
    dpq_scan_level,
    dpq_status,
    int64_t,
    size_t,
)
from dpq_fast._kernels.status cimport check
from libc.string cimport memcpy
from numpy cimport import_array, ndarray
from numpy.random cimport bitgen_t

import_array()

cdef enum:
    LINE = 64  # bytes
    # Most row entries, m (n + 1), of groups that are released side by side: their rows, of all lanes
    # together, stay in the cache.
    LANES_ENTRIES = 16384


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
    light : float
        Share of a total below which weights are drawn by themselves; more for tests.
    """

    cdef:
        dpq_groups_law law
        object q

    def __init__(self, ndarray q not None, double rate, tuple bounds, lattice,
                 double light=DPQ_LANES_LIGHT):
        self.q = q
        self.law.levels = q.shape[0]
        self.law.q = given_doubles(q)
        self.law.rate = rate
        self.law.low, self.law.high = bounds
        self.law.lattice = lattice is not None
        self.law.light = light
        if lattice is not None:
            self.law.per_unit = lattice.per_unit
            self.law.step = lattice.step
            self.law.first = lattice.first
            self.law.points = lattice.points
            self.law.bits = lattice.bits

    cdef ndarray _room(self, size_t n, dpq_groups_work *work):
        """What holds the work on up to n records: numbers of 8 bytes, of whatever kind."""
        cdef:
            size_t m = self.law.levels
            size_t room = dpq_groups_room(n) + 1
            size_t race = n + (n + 1) // DPQ_PATH_BLOCK + m + 3
            size_t decay_size = (sizeof(dpq_decay) + 7) // 8
            size_t level_size = (sizeof(dpq_scan_level) + 7) // 8
            size_t integral = 2 * room + 2 * (n + 1) + 6 * m
            size_t weighed = (3 * (n + 1) + 2 * m * (n + 1) + race + m + decay_size
                              + m * level_size)
            ndarray held = new_doubles(integral + weighed + 4 * m)

        work.point = integers(held)
        work.spare = work.point + room
        work.rank = work.spare + room
        work.left = work.rank + n + 1
        work.exponent = work.left + n + 1
        work.whole = work.exponent + m
        work.first = work.whole + m
        work.last = work.first + 2 * m
        work.number = doubles(held) + integral
        work.width = work.number + n + 1
        work.edge = work.width + n + 1
        work.race = work.edge + n + 1
        work.part = work.race + race
        work.decay = <dpq_decay *>(work.part + m)
        work.level = <dpq_scan_level *>(work.part + m + decay_size)
        work.lo = <size_t *>(work.part + m + decay_size + m * level_size)
        work.hi = work.lo + m
        work.row = work.hi + m
        work.path = work.row + m
        # last: mostly more than is used
        work.A = doubles(held) + integral + weighed + 4 * m - 2 * m * (n + 1)
        work.H = work.A + m * (n + 1)
        work.lanes_room = 0
        return held

    cdef ndarray _lanes(self, size_t n, dpq_groups_work *work):
        """Room for several groups of up to n records side by side."""
        cdef:
            size_t m = self.law.levels, entries = m * (n + 1)
            ndarray held = new_doubles(4 * entries + DPQ_LANES * (2 * entries + 3 * n + m + 8))
            double *at = doubles(held)

        work.lanes_room = n
        work.lanes.fade = at
        work.lanes.above = work.lanes.fade + entries
        work.lanes.below = work.lanes.above + entries
        work.lanes.stay = work.lanes.below + entries
        # rows at whole lines of the cache
        at = <double *>((<size_t>(work.lanes.stay + entries) + LINE - 1) // LINE * LINE)
        work.lanes.point = at
        work.lanes.suffix = work.lanes.point + DPQ_LANES * (n + 2)
        work.lanes.gain = work.lanes.suffix + DPQ_LANES * (n + 1)
        work.lanes.total = work.lanes.gain + DPQ_LANES * m
        work.column = <int64_t *>(work.lanes.total + DPQ_LANES)
        work.lanes.A = work.lanes.total + DPQ_LANES * (n + 1)
        work.lanes.H = work.lanes.A + DPQ_LANES * entries
        return held

    cdef ndarray _points(self, size_t n, const dpq_groups_work *work):
        """The sorted points of n records that the kernel left behind."""
        cdef ndarray points = new_integers(n) if self.law.lattice else new_doubles(n)

        if self.law.lattice:
            memcpy(integers(points), work.point, n * sizeof(int64_t))
        else:
            memcpy(doubles(points), work.number, n * sizeof(double))
        return points

    def outputs(self, ndarray points not None):
        """Outputs of (fine) points, which they replace, or of numbers: held within the bounds."""
        cdef:
            size_t m = points.shape[0], j
            int64_t *point
            double *number
            ndarray outputs

        if not self.law.lattice:
            number = <double *>given_doubles(points)
            for j in range(m):
                number[j] = min(max(number[j], self.law.low), self.law.high)
            return points
        point = <int64_t *>given_integers(points)
        outputs = new_doubles(m)
        for j in range(m):
            point[j] >>= self.law.bits
        dpq_lattice_decode(m, point, self.law.per_unit, self.law.step, self.law.first,
                           doubles(outputs))
        return outputs

    def one(self, ndarray value not None, double log_volume, double spare, int64_t held,
            rng not None):
        """Release one sample of a float64 array without NaN: m (fine) points or numbers, None, None.

        Where float64 will not do, or outputs are to be outside of windows: None, the sorted points,
        and the windows' reach and ln of what is outside at most; None for the former.

        `log_volume` is that of all tuples, and what is outside of windows is to weigh less by
        `spare` nats; inf for no windows. Records are put in order as far as `held` ranks from the
        targets at first, n for all of them.
        """
        cdef:
            size_t m = self.law.levels, n = value.shape[0]
            const double *values = given_doubles(value)
            bint lattice = self.law.lattice
            ndarray answers = new_integers(m) if lattice else new_doubles(m)
            int64_t *point = integers(answers)
            double *number = <double *>point
            dpq_groups_work work
            dpq_groups_windows windows
            ndarray room = self._room(n, &work)
            object bit_generator = rng.bit_generator
            bitgen_t *bits = bitgen_of(bit_generator)
            dpq_status status

        windows.log_volume, windows.spare, windows.held = log_volume, spare, held
        with bit_generator.lock, nogil:
            status = dpq_groups_release_one(&self.law, n, values, &work, bits, &windows,
                                            point if lattice else NULL,
                                            NULL if lattice else number)
        if status == DPQ_ERR_RANGE:
            return None, self._points(n, &work), None
        check(status)
        if windows.escaped:
            return None, self._points(n, &work), (windows.reach, windows.log_bound)
        return answers, None, None

    def flip_one(self, ndarray value not None, ndarray rate not None, rng not None):
        """Release each level of one sample like that, by permute-and-flip: its outputs, float64.

        For a lattice without dither; `rate` has one for each level. Not sorted.
        """
        cdef:
            size_t m = self.law.levels, n = value.shape[0]
            const double *values = given_doubles(value)
            const double *rates = given_doubles(rate)
            bint lattice = self.law.lattice
            ndarray answers = new_integers(m)
            int64_t *out = integers(answers)
            dpq_groups_work work
            ndarray room = self._room(n, &work)
            object bit_generator = rng.bit_generator
            bitgen_t *bits = bitgen_of(bit_generator)

        if not lattice or self.law.bits > 0:
            raise ValueError("flips are for a lattice without dither")
        if <size_t>rate.shape[0] != m:
            raise ValueError("each level needs a rate")
        with bit_generator.lock, nogil:
            dpq_groups_flip_one(&self.law, rates, n, values, &work, bits, out)
        return self.outputs(answers)

    def run(self, const int64_t[::1] start not None, const double[::1] value not None,
            const int64_t[::1] order not None, size_t next, ndarray answers not None,
            rng not None):
        """Release the groups order[next], ... into their rows of `answers`, shape (groups, m).

        `start` and `value` are as from `groups_scatter.order`, `answers` is int64 for a lattice, else float64.
        Groups of one size cost less one after the other. Returns the length of `order` and None, or
        where float64 will not do the place of a group in `order`, and its sorted points.
        """
        cdef:
            size_t n = 0, few = 0, size, g, place
            int64_t *out = integers(answers)
            bint lattice = self.law.lattice
            dpq_groups_work work
            ndarray room, lanes
            object bit_generator = rng.bit_generator
            bitgen_t *bits = bitgen_of(bit_generator)
            size_t groups = order.shape[0]
            dpq_status status

        if groups <= next:
            return groups, None
        for place in range(next, groups):
            g = order[place]
            if g >= <size_t>answers.shape[0] or g + 1 >= <size_t>start.shape[0]:
                raise ValueError("each group needs a start and a row")
            size = start[g + 1] - start[g]
            n = max(n, size)
            if size <= DPQ_LANES_MOST and (size + 1) * self.law.levels <= LANES_ENTRIES:
                few = max(few, size)
        room = self._room(n, &work)
        lanes = self._lanes(few, &work)
        with bit_generator.lock, nogil:
            status = dpq_groups_release(&self.law, groups, &start[0],
                                        &value[0] if value.shape[0] else NULL, &order[0], &work,
                                        bits, &next, out if lattice else NULL,
                                        NULL if lattice else <double *>out)
        if status == DPQ_ERR_RANGE:
            g = order[next]
            return next, self._points(start[g + 1] - start[g], &work)
        check(status)
        return next, None

    def flip(self, const int64_t[::1] start not None, const double[::1] value not None,
             size_t next, size_t stop, ndarray answers not None, rng not None):
        """Release the groups next, ..., stop - 1 into rows of `answers`, int64 of shape (groups, 1).

        By permute-and-flip, for one level and a lattice without dither; `start` and `value` are as
        from `order`.
        """
        cdef:
            size_t n = 0, g
            int64_t *point = integers(answers)
            dpq_groups_work work
            ndarray room
            object bit_generator = rng.bit_generator
            bitgen_t *bits = bitgen_of(bit_generator)

        if not self.law.lattice or self.law.bits > 0 or self.law.levels != 1:
            raise ValueError("flips are for one level and a lattice without dither")
        for g in range(next, stop):
            n = max(n, <size_t>(start[g + 1] - start[g]))
        room = self._room(n, &work)
        with bit_generator.lock, nogil:
            dpq_groups_flip(&self.law, next, stop, &start[0], &value[0] if value.shape[0] else NULL,
                            &work, bits, point)
