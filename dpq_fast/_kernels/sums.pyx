"""Exact sums of csrc/sums.h."""

from dpq_fast._kernels.buffers cimport given_column
from dpq_fast._kernels.csrc cimport (
    DPQ_SUMS_ASIDE,
    DPQ_SUMS_REACH,
    dpq_column,
    dpq_sums_plain,
    dpq_sums_squares,
    dpq_sums_weighted,
    dpq_sums_weighted_squares,
    dpq_sums_wide,
    int64_t,
    size_t,
)
from numpy cimport ndarray

# Integers may be as far from zero.
REACH = DPQ_SUMS_REACH
# And so far from the middle of their range where they are squared.
ASIDE = DPQ_SUMS_ASIDE


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


def squares(ndarray value not None, double scale, int64_t first, int64_t last):
    """Sum and number as of `plain`, of fewer than 2^31, and the sum of squares about the middle."""
    cdef:
        dpq_column column = given_column(value)
        size_t n = value.shape[0], kept = 0
        int64_t total = 0, squared = 0, middle = _middle(scale, first, last)

    if n >> 31:
        raise ValueError("value must hold fewer than 2^31 numbers")
    if n > 0:
        with nogil:
            kept = dpq_sums_squares(n, &column, scale, first, last, middle, &total, &squared)
    return total, kept, squared


def weighted_squares(const double[::1] value not None, const int64_t[::1] weight not None,
                     double scale, int64_t first, int64_t last):
    """The same with as many of each value as its weight says; weights are not negative."""
    cdef:
        size_t n = value.shape[0]
        int64_t kept = 0, middle = _middle(scale, first, last)
        dpq_sums_wide total, squared

    if <size_t>weight.shape[0] != n:
        raise ValueError("weight must have one entry for each value")
    if n == 0:
        return 0, 0, 0
    with nogil:
        kept = dpq_sums_weighted_squares(
            n, &value[0], &weight[0], scale, first, last, middle, &total, &squared
        )
    return (
        (int(total.high) << 64) + total.low,
        kept,
        (int(squared.high) << 64) + squared.low,
    )


def middle_of(first, last):
    """What squares are taken about."""
    return (first + last) >> 1


cdef int64_t _middle(double scale, int64_t first, int64_t last) except? -1:
    _check(scale, first, last)
    if last - first > 2 * DPQ_SUMS_ASIDE:
        raise ValueError("last must be at most 2^17 from first")
    return middle_of(first, last)


cdef _check(double scale, int64_t first, int64_t last):
    if not 0.0 < scale < float("inf") or not -DPQ_SUMS_REACH <= first <= last <= DPQ_SUMS_REACH:
        raise ValueError("scale must be positive and finite, first <= last within 2^31 of zero")
