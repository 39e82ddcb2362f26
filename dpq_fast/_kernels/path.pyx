"""The backward pass of csrc/path.h."""

import numpy as np

from dpq_fast._kernels.bitgen cimport bitgen_of
from dpq_fast._kernels.buffers cimport doubles, integers, new_doubles, places
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
from numpy cimport import_array, ndarray
from numpy.random cimport bitgen_t

import_array()


def draw(Scan scan not None, double log_escape, size_t size, rng not None):
    """`size` paths, uintp of shape (size, m), and how many escaped: those hold T everywhere."""
    cdef:
        ndarray paths = np.empty((size, scan.problem.levels), dtype=np.uintp)
        size_t *path = places(paths)
        size_t room = scan.longest + scan.longest // DPQ_PATH_BLOCK + scan.problem.levels + 2
        ndarray workspace = new_doubles(room)
        double *work = doubles(workspace)
        size_t escaped
        object bit_generator = rng.bit_generator
        bitgen_t *bits = bitgen_of(bit_generator)
        dpq_status status

    with bit_generator.lock, nogil:
        status = dpq_path_draw(&scan.problem, scan.decay, &scan.rows, log_escape, size, bits, work,
                               path, &escaped)
    check(status)
    return paths, escaped


def points_lattice(const size_t[:, ::1] path not None, const int64_t[::1] left not None,
                   const double[::1] width not None, rng not None):
    """Lattice points inside the paths' intervals, int64 of the paths' shape."""
    cdef:
        size_t size = path.shape[0], m = path.shape[1]
        ndarray points = np.empty((size, m), dtype=np.int64)
        int64_t *point = integers(points)
        object bit_generator = rng.bit_generator
        bitgen_t *bits = bitgen_of(bit_generator)

    if size > 0:
        with bit_generator.lock, nogil:
            dpq_path_points_lattice(m, size, &path[0, 0], &left[0], &width[0], bits, point)
    return points


def points_continuous(const size_t[:, ::1] path not None, const double[::1] left not None,
                      const double[::1] width not None, rng not None):
    """Numbers inside the paths' intervals, float64 of the paths' shape."""
    cdef:
        size_t size = path.shape[0], m = path.shape[1]
        ndarray points = np.empty((size, m))
        double *point = doubles(points)
        object bit_generator = rng.bit_generator
        bitgen_t *bits = bitgen_of(bit_generator)

    if size > 0:
        with bit_generator.lock, nogil:
            dpq_path_points_continuous(m, size, &path[0, 0], &left[0], &width[0], bits, point)
    return points
