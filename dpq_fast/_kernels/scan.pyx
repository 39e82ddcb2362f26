"""The forward pass of csrc/scan.h."""

import numpy as np

from dpq_fast._kernels.buffers cimport (
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
    dpq_scan_close,
    dpq_scan_forward,
    dpq_scan_forward_wide,
    dpq_scan_level,
    dpq_scan_prepare,
    dpq_scan_sums,
    dpq_scan_targets,
    dpq_scan_total,
    dpq_status,
    dpq_wide,
    int64_t,
    size_t,
)
from dpq_fast._kernels.status cimport check
from numpy cimport import_array, ndarray

import_array()

# One entry of a wide row, as dpq_wide in csrc/scan.h.
WIDE = np.dtype([("mantissa", np.float64), ("exponent", np.int64)])


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
    A, H : ndarray
        All rows one after the other, float64 or the structured `WIDE`.
    exponent : ndarray of int64, shape (m,), or None
        Power of two of each float64 row.
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
        """Compute the rows; in float64 where that keeps every bit, else in wide numbers."""
        if not self.go_on(None, True, False):
            self.forward_wide()

    def forward_wide(self):
        """Compute the rows in wide numbers, whatever the widths."""
        self.go_on(None, True, True)

    def rows_from(self, size_t first):
        """Rows from level `first` on, for a scan of later levels that goes on from them."""
        cdef:
            size_t m = self.problem.levels - first, at = self.problem.start[first], j
            ndarray scales = new_doubles(2 * m)
            double *scale = doubles(scales)

        for j in range(m):
            scale[2 * j] = self.level[first + j].gain
            scale[2 * j + 1] = self.level[first + j].largest
        exponent = None if self.exponent is None else self.exponent[first:].copy()
        return self.A[at:].copy(), self.H[at:].copy(), exponent, scales

    def go_on(self, tuple given, bint ends, bint wide):
        """Compute the rows after those that are given; False if float64 will not do.

        Parameters
        ----------
        given : tuple or None
            The rows of the first levels, from another scan's `rows_from`, in numbers of one kind.
        ends : bool
            Whether the last level is the last of all, or others follow: then there is no log_total.
        wide : bool
            Whether to compute in wide numbers, which always do.
        """
        cdef:
            size_t first = 0, j
            ndarray work
            double *scale
            double *total = &self.log_total if ends else NULL
            double *plain_work
            dpq_large *wide_work
            int64_t *exponent
            dpq_status status

        if wide:
            self._new_wide_rows()
        else:
            self._keep(self._new_rows(), new_integers(self.problem.levels))
        if given is not None:
            scale, first = doubles(given[3]), given[3].shape[0] // 2
            dpq_scan_prepare(&self.problem, self.decay, self.level)
            self.A[:given[0].size], self.H[:given[1].size] = given[0], given[1]
            if not wide:
                self.exponent[:first] = given[2]
            for j in range(first):
                self.level[j].gain, self.level[j].largest = scale[2 * j], scale[2 * j + 1]
        if wide:
            work = np.empty(2 * self.longest, dtype=WIDE)
            wide_work = <dpq_large *>doubles(work)
            with nogil:
                dpq_scan_forward_wide(&self.problem, self.decay, self.level, first,
                                      <dpq_wide *>self.rows.wide_A, <dpq_wide *>self.rows.wide_H,
                                      wide_work, total)
            return True
        work = new_doubles(self.longest)
        plain_work, exponent = doubles(work), integers(self.exponent)
        with nogil:
            status = dpq_scan_forward(&self.problem, self.decay, self.level, first,
                                      <double *>self.rows.A, <double *>self.rows.H, exponent,
                                      plain_work, total)
        if status != DPQ_ERR_RANGE:
            check(status)
        return status == DPQ_OK

    def forward_by(self, product):
        """Compute float64 rows with sums from elsewhere; wide ones if float64 will not do.

        ``product(j, scan)`` returns the sums of level j >= 1, float64 of length hi[j] - lo[j].
        """
        cdef:
            ndarray rows = self._new_rows()
            ndarray exponent = new_integers(self.problem.levels)
            double *a = doubles(rows)
            double *h = a + self.entries
            int64_t *e = integers(exponent)
            size_t j, at, n
            dpq_status status = DPQ_OK

        with nogil:
            dpq_scan_prepare(&self.problem, self.decay, self.level)
        self._keep(rows, exponent)
        for j in range(self.problem.levels):
            at = self.problem.start[j]
            n = self.problem.hi[j] - self.problem.lo[j]
            self.A[at:at + n] = product(j, self) if j > 0 else 1.0
            with nogil:
                status = dpq_scan_close(&self.problem, self.decay, self.level, j, a, h, e)
            if status != DPQ_OK:
                break
        if status == DPQ_OK:
            with nogil:
                status = dpq_scan_total(&self.problem, self.decay, self.level, h, e,
                                        &self.log_total)
        if status == DPQ_ERR_RANGE:
            self.forward_wide()
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

    cdef ndarray _new_rows(self):
        """Float64 rows A and H: one array, which malloc keeps from call to call more often."""
        return new_doubles(2 * self.entries)

    cdef _new_wide_rows(self):
        self.A = self.H = None  # their memory is needed
        self.A, self.H = np.empty(self.entries, dtype=WIDE), np.empty(self.entries, dtype=WIDE)
        self.exponent = None
        self.rows.A = self.rows.H = NULL
        self.rows.exponent = NULL
        self.rows.wide_A, self.rows.wide_H = <dpq_wide *>doubles(self.A), <dpq_wide *>doubles(self.H)

    cdef _keep(self, ndarray rows, ndarray exponent):
        self.A, self.H = rows[:self.entries], rows[self.entries:]
        self.exponent = exponent
        self.rows.A = doubles(rows)
        self.rows.H = self.rows.A + self.entries
        self.rows.exponent = integers(exponent)
        self.rows.wide_A = self.rows.wide_H = NULL
