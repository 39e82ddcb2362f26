"""Exact sums of csrc/sums.h."""

from dpq_fast._kernels.buffers cimport given_column
from dpq_fast._kernels.csrc cimport (
    DPQ_SUMS_REACH,
    dpq_column,
    dpq_sums_plain,
    dpq_sums_weighted,
    dpq_sums_wide,
    int64_t,
    size_t,
)
from numpy cimport ndarray

# Integers may be as far from zero.
REACH = DPQ_SUMS_REACH


def plain(ndarray value not None, double scale, int64_t first, int64_t last):
    """Sum and number of the values that are not NaN, rounded and clamped; fewer than 2^32."""
    cdef:
        dpq_column column = given_column(value)
        size_t n = value.shape[0], kept = 0
        int64_t total = 0

    _check(scale, first, last)
    if n >> 32:
        raise ValueError("value must hold fewer than 2^32 numbers")
    if n > 0:
        with nogil:
            kept = dpq_sums_plain(n, &column, scale, first, last, &total)
    return total, kept


def weighted(const double[::1] value not None, const int64_t[::1] weight not None, double scale,
             int64_t first, int64_t last):
    """The same with as many of each value as its weight says; weights are not negative."""
    cdef:
        size_t n = value.shape[0]
        int64_t kept = 0
        dpq_sums_wide total

    _check(scale, first, last)
    if <size_t>weight.shape[0] != n:
        raise ValueError("weight must have one entry for each value")
    if n == 0:
        return 0, 0
    with nogil:
        kept = dpq_sums_weighted(n, &value[0], &weight[0], scale, first, last, &total)
    return (int(total.high) << 64) + total.low, kept


cdef _check(double scale, int64_t first, int64_t last):
    if not 0.0 < scale < float("inf") or not -DPQ_SUMS_REACH <= first <= last <= DPQ_SUMS_REACH:
        raise ValueError("scale must be positive and finite, first <= last within 2^31 of zero")
