"""The forward pass of csrc/scan.h."""

import numpy as np

from dpq_fast._kernels.buffers cimport (
    PyArray_DATA,
    doubles,
    given_doubles,
    given_integers,
    given_places,
    integers,
    new_doubles,
    new_integers,
    new_places,
    places,
)
from dpq_fast._kernels.csrc cimport (
    DPQ_ERR_RANGE,
    DPQ_OK,
    dpq_decay,
    dpq_large,
    dpq_scan_choose_blocks,
    dpq_scan_close,
    dpq_scan_forward,
    dpq_scan_forward_blocks,
    dpq_scan_level,
    dpq_scan_prepare,
    dpq_scan_sums,
    dpq_scan_targets,
    dpq_scan_total,
    dpq_status,
    int64_t,
    size_t,
    uint8_t,
    uint32_t,
)
from dpq_fast._kernels.status cimport check
from numpy cimport import_array, ndarray

import_array()

# Kinds of rows, each of which will do where those before it do not: with an exponent for each row,
# for blocks of intervals, and for each entry. The last ones always do.
KINDS = EACH_ROW, EACH_BLOCK, EACH_ENTRY = range(3)


def targets(ndarray q not None, int64_t n):
    """The targets q[j] n as floor, int64, and fraction, float64."""
    cdef:
        size_t m = q.shape[0]
        ndarray whole = new_integers(m)
        ndarray part = new_doubles(m)

    dpq_scan_targets(m, given_doubles(q), n, integers(whole), doubles(part))
    return whole, part


cdef class Scan:
    """Rows A and H of the JointExp recursion over compressed intervals.

    Parameters
    ----------
    rank : ndarray of int64, shape (T,)
        Records below each interval, non-decreasing; T >= 1.
    width : ndarray of float64, shape (T,)
        Widths, positive; on a lattice numbers of points.
    lattice : bool
        Whether several outputs in one interval are counted as multisets.
    q : ndarray of float64, shape (m,)
        Levels, ascending, distinct.
    n : int
        Number of records.
    lo, hi : ndarray of uintp, shape (m,)
        Level j uses intervals lo[j] <= t < hi[j]; both non-decreasing, none empty.
    rate : float
        Loss of log-weight per rank, c.

    Attributes
    ----------
    A, H : ndarray of float64
        All rows one after the other.
    exponent : ndarray of int64, shape (m,), or None
        Power of two of each row; None where it is of blocks or entries.
    blocks : tuple or None
        Then the block of each interval, uint32 of shape (T,), where exponents of each row begin, and
        exponents of A and of H.
    log_total : float
        ln Z, the log-weight of all paths.
    whole, part : ndarray, shape (m,)
        The targets Q_j as floor (int64) and fraction (float64).
    """

    def __init__(self, ndarray rank not None, ndarray width not None, bint lattice,
                 ndarray q not None, int64_t n, ndarray lo not None, ndarray hi not None,
                 double rate):
        cdef:
            size_t m = q.shape[0], j
            ndarray starts = new_places(m)
            size_t *start = places(starts)
            const size_t *los = given_places(lo)
            const size_t *his = given_places(hi)
            # both consist of numbers of 8 bytes
            ndarray buffers = new_doubles((sizeof(dpq_decay) + m * sizeof(dpq_scan_level)) // 8)

        self.longest = 0
        self.entries = 0
        for j in range(m):
            start[j] = self.entries
            self.entries += his[j] - los[j]
            self.longest = max(self.longest, his[j] - los[j])
        self.decay = <dpq_decay *>doubles(buffers)
        self.level = <dpq_scan_level *>(self.decay + 1)
        self.inputs = (width, starts, buffers)
        self.rank, self.lo, self.hi = rank, lo, hi
        self.whole, self.part = targets(q, n)
        self.rate = rate
        self.problem.intervals = rank.shape[0]
        self.problem.rank = given_integers(rank)
        self.problem.width = given_doubles(width)
        self.problem.lattice = lattice
        self.problem.levels = m
        self.problem.whole = integers(self.whole)
        self.problem.part = doubles(self.part)
        self.problem.lo = los
        self.problem.hi = his
        self.problem.start = start
        self.problem.rate = 2.0 * rate

    def forward(self):
        """Compute the rows, of the first kind that keeps every bit."""
        self._forward_as_first_of(KINDS)

    cdef _forward_as_first_of(self, kinds):
        for kind in kinds:
            if self.go_on(None, True, kind):
                break

    def forward_as(self, int kind):
        """Compute rows of one of the `KINDS`; whether they will do."""
        return self.go_on(None, True, kind)

    def rows_from(self, size_t first):
        """Rows from level `first` on, for a scan of later levels that goes on from them."""
        cdef:
            size_t m = self.problem.levels - first, at = self.problem.start[first], j
            ndarray scales = new_doubles(2 * m)
            double *scale = doubles(scales)

        for j in range(m):
            scale[2 * j] = self.level[first + j].gain
            scale[2 * j + 1] = self.level[first + j].largest
        if self.exponent is not None:
            exponents = self.exponent[first:].copy()
        else:
            _, begin, *kept = self.blocks
            low, high = self.lo[first], self.hi[-1]
            exponents = self.begins[low:high].copy(), *(each[begin[first]:].copy() for each in kept)
        return self.A[at:].copy(), self.H[at:].copy(), exponents, scales

    def go_on(self, tuple given, bint ends, int kind):
        """Compute the rows after those that are given; False if such rows will not do.

        Parameters
        ----------
        given : tuple or None
            The rows of the first levels, from another scan's `rows_from`, of the same kind.
        ends : bool
            Whether the last level is the last of all, or others follow: then there is no log_total.
        kind : int
            One of `KINDS`.
        """
        cdef:
            size_t first = 0, j
            ndarray work
            double *scale
            double *total = &self.log_total if ends else NULL
            double *a
            double *h
            double *plain_work
            dpq_large *large_work
            int64_t *exponent
            dpq_status status

        self._new_rows(kind, None if given is None or kind == EACH_ROW else given[2][0])
        if given is not None:
            scale, first = doubles(given[3]), given[3].shape[0] // 2
            dpq_scan_prepare(&self.problem, self.decay, self.level)
            self.A[:given[0].size], self.H[:given[1].size] = given[0], given[1]
            if kind == EACH_ROW:
                self.exponent[:first] = given[2]
            else:
                for kept, known in zip(self.blocks[2:], given[2][1:], strict=True):
                    kept[:known.size] = known
            for j in range(first):
                self.level[j].gain, self.level[j].largest = scale[2 * j], scale[2 * j + 1]
        a, h = <double *>self.rows.A, <double *>self.rows.H
        if kind == EACH_ROW:
            work = new_doubles(self.longest)
            plain_work, exponent = doubles(work), integers(self.exponent)
            with nogil:
                status = dpq_scan_forward(&self.problem, self.decay, self.level, first, a, h,
                                          exponent, plain_work, total)
        else:
            work = new_doubles(3 * self.longest * (sizeof(dpq_large) // 8))
            large_work = <dpq_large *>doubles(work)
            with nogil:
                status = dpq_scan_forward_blocks(&self.problem, self.decay, self.level, first,
                                                 &self.rows.blocks, a, h, large_work, total)
        if status != DPQ_ERR_RANGE:
            check(status)
        return status == DPQ_OK

    def forward_by(self, product):
        """Compute rows with an exponent each by sums from elsewhere; others if these will not do.

        ``product(j, scan)`` returns the sums of level j >= 1, float64 of length hi[j] - lo[j].
        """
        cdef:
            double *a
            double *h
            int64_t *exponent
            size_t j, at, n
            dpq_status status = DPQ_OK

        with nogil:
            dpq_scan_prepare(&self.problem, self.decay, self.level)
        self._new_rows(EACH_ROW, None)
        a, h = <double *>self.rows.A, <double *>self.rows.H
        exponent = integers(self.exponent)
        for j in range(self.problem.levels):
            at = self.problem.start[j]
            n = self.problem.hi[j] - self.problem.lo[j]
            self.A[at:at + n] = product(j, self) if j > 0 else 1.0
            with nogil:
                status = dpq_scan_close(&self.problem, self.decay, self.level, j, a, h, exponent)
            if status != DPQ_OK:
                break
        if status == DPQ_OK:
            with nogil:
                status = dpq_scan_total(&self.problem, self.decay, self.level, h, exponent,
                                        &self.log_total)
        if status == DPQ_ERR_RANGE:
            self._forward_as_first_of((EACH_BLOCK, EACH_ENTRY))
            return
        check(status)

    def sums(self, size_t j):
        """The sums of level j >= 1 from row j - 1, by the scan."""
        cdef:
            const double[::1] H = self.H
            ndarray sums = new_doubles(self.problem.hi[j] - self.problem.lo[j])
            ndarray work = new_doubles(self.longest)
            double *out = doubles(sums)
            double *w = doubles(work)

        with nogil:
            dpq_scan_sums(&self.problem, self.decay, self.level, j, &H[0], out, w)
        return sums

    def row(self, size_t j):
        """Row j of H, a view: float64 entry s - lo[j] stands for interval s."""
        cdef size_t at = self.problem.start[j]
        return self.H[at:at + (self.problem.hi[j] - self.problem.lo[j])]

    cdef _new_rows(self, int kind, ndarray known):
        """Room for rows A and H: one array, which malloc keeps from call to call more often.

        `known` says whether blocks begin at the intervals of rows that are given.
        """
        cdef:
            size_t m = self.problem.levels, j, given = 0
            ndarray rows, begins, of_interval, begin, firsts
            const uint32_t *block
            size_t *first

        if self.A is None:
            rows = new_doubles(2 * self.entries)
            self.A, self.H = rows[:self.entries], rows[self.entries:]
            self.rows.A = doubles(rows)
            self.rows.H = self.rows.A + self.entries
        if kind == EACH_ROW:
            self.blocks, self.exponent = None, new_integers(m)
            self.rows.exponent = integers(self.exponent)
            return
        begins = np.empty(self.problem.intervals, dtype=np.uint8)
        if known is not None:
            given = known.shape[0]
            begins[self.problem.lo[0]:self.problem.lo[0] + given] = known
        of_interval = np.empty(self.problem.intervals, dtype=np.uint32)
        begin, firsts = new_places(self.problem.intervals + 1), new_places(m + 1)
        block, first = <const uint32_t *>PyArray_DATA(of_interval), places(firsts)
        self.rows.blocks.alone = kind == EACH_ENTRY
        dpq_scan_choose_blocks(&self.problem, self.rows.blocks.alone, given,
                               <uint8_t *>PyArray_DATA(begins), <uint32_t *>block, places(begin))
        first[0] = 0
        for j in range(m):
            first[j + 1] = first[j] + 1 + (block[self.problem.hi[j] - 1] - block[self.problem.lo[j]])
        exponents = new_integers(first[m]), new_integers(first[m])
        self.rows.blocks.of_interval, self.rows.blocks.begin = block, places(begin)
        self.rows.blocks.first = first
        self.rows.blocks.A, self.rows.blocks.H = integers(exponents[0]), integers(exponents[1])
        self.exponent, self.rows.exponent = None, NULL
        self.blocks, self.begin, self.begins = (of_interval, firsts, *exponents), begin, begins
