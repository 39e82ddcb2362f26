"""Counting by bin of csrc/histogram.h."""

import numpy as np

from dpq_fast._kernels.buffers cimport doubles, given_column
from dpq_fast._kernels.csrc cimport (
    DPQ_HISTOGRAM_WORK,
    dpq_column,
    dpq_histogram,
    dpq_histogram_count,
    dpq_histogram_prepare,
    dpq_histogram_thresholds,
    dpq_key_of,
    dpq_key_value,
    int64_t,
    size_t,
    uint32_t,
)
from libc.math cimport INFINITY
from numpy cimport ndarray

# Tables of up to this many keys are counted by key, in 4 MB, where values are as many as keys.
cdef enum:
    COUNTED_KEYS = 1 << 18


cdef class Table:
    """Bins told apart by ascending inner edges, ready to count; immutable, shared by threads.

    Attributes
    ----------
    most : int
        Edges that the key does not tell apart; beyond 1, some values take a search.
    """

    cdef:
        dpq_histogram bins
        int64_t[::1] edge  # keep the memory that `bins` points to
        uint32_t[::1] start
        int64_t[::1] next

    def __cinit__(self, const double[::1] edge not None, double low, double base, double scale,
                  bint logarithmic, int shift, Py_ssize_t last):
        cdef:
            Py_ssize_t c, k, edges = edge.shape[0]
            int64_t[::1] ordered = np.empty(edges + 1, dtype=np.int64)

        if not 0 <= last < 2**31 - 1 or not 0 <= shift <= 52 or edges >= 2**31 - 1:
            raise ValueError("last and the number of edges must be below 2^31 - 1, shift at most 52")
        if not -np.inf < base < np.inf or not 0.0 < scale < np.inf or low != low:
            raise ValueError("base must be finite, scale positive and finite, low not NaN")
        for c in range(edges):
            if edge[c] != edge[c] or (c > 0 and edge[c] < edge[c - 1]):
                raise ValueError("edge must ascend")
            ordered[c] = dpq_key_of(edge[c])
        ordered[edges] = np.iinfo(np.int64).max
        self.edge = ordered
        self.start = np.zeros(last + 1, dtype=np.uint32)
        self.bins.edges = edges
        self.bins.edge = &self.edge[0]
        self.bins.low = low
        self.bins.base = base
        self.bins.scale = scale
        self.bins.logarithmic = logarithmic
        self.bins.shift = shift
        self.bins.last = last
        self.bins.start = &self.start[0]
        with nogil:
            dpq_histogram_prepare(&self.bins)
        if self.bins.most <= 1 and last < COUNTED_KEYS:
            self.next = np.empty(last + 1, dtype=np.int64)
            for k in range(last + 1):
                self.next[k] = ordered[self.start[k]]
            self.bins.next = &self.next[0]

    def __reduce__(self):
        edge = np.array([dpq_key_value(key) for key in self.edge[:self.bins.edges]])
        return Table, (edge, self.bins.low, self.bins.base, self.bins.scale,
                       bool(self.bins.logarithmic), self.bins.shift, self.bins.last)

    @property
    def most(self):
        return self.bins.most

    def count(self, ndarray value not None, bint negate, const int64_t[::1] weight,
              int64_t[::1] count not None):
        """Add the number of values (negated) in each bin, or their weights, to `count`."""
        cdef:
            dpq_column column = given_column(value)
            size_t n = value.shape[0]
            double sign = -1.0 if negate else 1.0
            const int64_t *weights = NULL
            uint32_t[::1] work
            uint32_t *counters = NULL

        if <size_t>count.shape[0] != self.bins.edges + 1:
            raise ValueError("count must have one entry for each bin")
        if weight is not None and <size_t>weight.shape[0] != n:
            raise ValueError("weight must have one entry for each value")
        if n > 0:
            if weight is not None:
                weights = &weight[0]
            elif self.bins.next != NULL and n > self.bins.last:
                work = np.zeros(DPQ_HISTOGRAM_WORK * (<size_t>self.bins.last + 1), dtype=np.uint32)
                counters = &work[0]
            with nogil:
                dpq_histogram_count(&self.bins, n, &column, sign, weights, &count[0], counters)


def thresholds(double base, double lower, size_t skip, size_t size, size_t step=1):
    """The thresholds of numbers skip, skip + step, ... < size, as far as they are finite.

    skip <= size, step >= 1.
    """
    cdef:
        ndarray threshold = np.empty((size - skip + step - 1) // step)
        double *out = doubles(threshold)
        size_t end

    with nogil:
        end = dpq_histogram_thresholds(base, lower, INFINITY, skip, step, size, out)
    return threshold[:(max(end, skip) - skip + step - 1) // step]


def reach(double base, double lower, double upper, size_t size):
    """How many thresholds there are up to the first one not below `upper`, at most `size`."""
    cdef size_t end

    with nogil:
        end = dpq_histogram_thresholds(base, lower, upper, size, 1, size, NULL)
    return end
