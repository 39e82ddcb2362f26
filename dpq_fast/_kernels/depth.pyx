"""The cells and the race of csrc/depth.h."""

from dpq_fast._kernels.bitgen cimport bitgen_of
from dpq_fast._kernels.buffers cimport (
    doubles,
    given_doubles,
    given_integers,
    integers,
    new_doubles,
    new_integers,
    new_places,
    places,
)
from dpq_fast._kernels.csrc cimport (
    dpq_depth_cells,
    dpq_depth_flip,
    dpq_depth_point,
    dpq_scan_targets,
    int64_t,
    size_t,
)
from numpy cimport import_array, ndarray
from numpy.random cimport bitgen_t

import_array()


def target(double q, int64_t n):
    """q n as an integer and a fraction in [0, 1)."""
    cdef:
        int64_t whole
        double part

    dpq_scan_targets(1, &q, n, &whole, &part)
    return whole, part


def cells(ndarray rank not None, ndarray width not None, ndarray left not None, int64_t n,
          int64_t whole, double part, int64_t below, int64_t through):
    """Start, points and loss of each cell of T >= 1 intervals."""
    cdef:
        Py_ssize_t intervals = rank.shape[0], kept
        const int64_t *ranks = given_integers(rank)
        const double *widths = given_doubles(width)
        const int64_t *lefts = given_integers(left)
        ndarray start, points, loss

    if intervals < 1 or width.shape[0] != intervals or left.shape[0] != intervals:
        raise ValueError("cells need a rank, a width and a left end of each of some intervals")
    start = new_integers(2 * intervals + 1)
    points = new_doubles(2 * intervals + 1)
    loss = new_doubles(2 * intervals + 1)
    kept = dpq_depth_cells(intervals, ranks, widths, lefts, n, whole, part, below, through,
                           integers(start), doubles(points), doubles(loss))
    return start[:kept], points[:kept], loss[:kept]


def flip(ndarray points not None, ndarray loss not None, double rate, size_t best, size_t size,
         rng not None):
    """`size` cells drawn by permute-and-flip, uintp; at least one cell, `best` of the least loss."""
    cdef:
        Py_ssize_t count = points.shape[0]
        size_t i
        const double *sizes = given_doubles(points)
        const double *losses = given_doubles(loss)
        ndarray drawn = new_places(size)
        size_t *cell = places(drawn)
        object bit_generator = rng.bit_generator
        bitgen_t *bits = bitgen_of(bit_generator)

    if loss.shape[0] != count or best >= <size_t>count:
        raise ValueError("cells need points and a loss each")
    with bit_generator.lock, nogil:
        for i in range(size):
            cell[i] = dpq_depth_flip(count, sizes, losses, rate, best, bits)
    return drawn


def points(ndarray rank not None, ndarray width not None, ndarray left not None, int64_t n,
           int64_t whole, double part, double rate, size_t size, rng not None):
    """`size` points drawn by permute-and-flip, int64, from all T >= 1 intervals of n records."""
    cdef:
        Py_ssize_t intervals = rank.shape[0]
        size_t i
        const int64_t *ranks = given_integers(rank)
        const double *widths = given_doubles(width)
        const int64_t *lefts = given_integers(left)
        ndarray drawn = new_integers(size)
        int64_t *point = integers(drawn)
        object bit_generator = rng.bit_generator
        bitgen_t *bits = bitgen_of(bit_generator)

    if intervals < 1 or width.shape[0] != intervals or left.shape[0] != intervals:
        raise ValueError("points need a rank, a width and a left end of each of some intervals")
    with bit_generator.lock, nogil:
        for i in range(size):
            point[i] = dpq_depth_point(intervals, ranks, widths, lefts, n, whole, part, rate, bits)
    return drawn
