"""The backward pass of csrc/path.h."""

import numpy as np

from dpq_fast._kernels.bitgen cimport bitgen_of
from dpq_fast._kernels.csrc cimport (
    DPQ_PATH_BLOCK,
    dpq_path_draw,
    dpq_path_points_continuous,
    dpq_path_points_lattice,
    dpq_status,
    int64_t,
    size_t,
)
from dpq_fast._kernels.scan cimport Scan
from dpq_fast._kernels.status cimport check
from numpy.random cimport bitgen_t


def draw(Scan scan not None, double log_escape, size_t size, rng not None):
    """`size` >= 1 paths, uintp of shape (size, m); a draw that escapes holds T everywhere."""
    cdef:
        size_t m = scan.problem.levels
        size_t[:, ::1] path = np.empty((size, m), dtype=np.uintp)
        double[::1] work = np.empty(scan.longest // DPQ_PATH_BLOCK + DPQ_PATH_BLOCK + m + 2)
        object bit_generator = rng.bit_generator
        bitgen_t *bits = bitgen_of(bit_generator)
        dpq_status status

    with bit_generator.lock, nogil:
        status = dpq_path_draw(&scan.problem, scan.decay, &scan.rows, log_escape, size, bits,
                               &work[0], &path[0, 0])
    check(status)
    return path.base


def points_lattice(const size_t[:, ::1] path not None, const int64_t[::1] left not None,
                   const double[::1] width not None, rng not None):
    """Lattice points inside the paths' intervals, int64 of the paths' shape."""
    cdef:
        size_t size = path.shape[0], m = path.shape[1]
        int64_t[:, ::1] point = np.empty((size, m), dtype=np.int64)
        object bit_generator = rng.bit_generator
        bitgen_t *bits = bitgen_of(bit_generator)

    with bit_generator.lock, nogil:
        dpq_path_points_lattice(m, size, &path[0, 0], &left[0], &width[0], bits, &point[0, 0])
    return point.base


def points_continuous(const size_t[:, ::1] path not None, const double[::1] left not None,
                      const double[::1] width not None, rng not None):
    """Numbers inside the paths' intervals, float64 of the paths' shape."""
    cdef:
        size_t size = path.shape[0], m = path.shape[1]
        double[:, ::1] point = np.empty((size, m))
        object bit_generator = rng.bit_generator
        bitgen_t *bits = bitgen_of(bit_generator)

    with bit_generator.lock, nogil:
        dpq_path_points_continuous(m, size, &path[0, 0], &left[0], &width[0], bits, &point[0, 0])
    return point.base
