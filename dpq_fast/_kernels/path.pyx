"""The backward pass of csrc/path.h."""

from dpq_fast._kernels.bitgen cimport bitgen_of
from dpq_fast._kernels.buffers cimport (
    check_given,
    doubles,
    given_doubles,
    given_integers,
    integers,
    new_doubles,
    new_table,
    places,
)
from dpq_fast._kernels.csrc cimport (
    DPQ_PATH_BLOCK,
    dpq_path_draw,
    dpq_path_go_on,
    dpq_path_points_continuous,
    dpq_path_points_lattice,
    int64_t,
    size_t,
)
from dpq_fast._kernels.scan cimport Scan
from numpy cimport NPY_FLOAT64, NPY_INT64, NPY_UINTP, import_array, ndarray
from numpy.random cimport bitgen_t

import_array()


cdef ndarray workspace_of(Scan scan):
    """What draws from a scan's rows work in."""
    return new_doubles(scan.longest + scan.longest // DPQ_PATH_BLOCK + scan.problem.levels + 2)


def draw(Scan scan not None, double log_escape, size_t size, rng not None):
    """`size` paths, uintp of shape (size, m), and how many escaped: those hold T everywhere."""
    cdef:
        ndarray paths = new_table(size, scan.problem.levels, NPY_UINTP)
        size_t *path = places(paths)
        ndarray workspace = workspace_of(scan)
        double *work = doubles(workspace)
        size_t escaped
        object bit_generator = rng.bit_generator
        bitgen_t *bits = bitgen_of(bit_generator)

    with bit_generator.lock, nogil:
        dpq_path_draw(&scan.problem, scan.decay, &scan.rows, log_escape, size, bits, work, path,
                      &escaped)
    return paths, escaped


def go_on(Scan scan not None, size_t first, ndarray left not None, ndarray path not None,
          rng not None):
    """Draw more of some paths, uintp of shape (size, m), as far as to level `first` or beyond it.

    Of path i the levels from ``left[i]`` on are there; it is overwritten by what is left then.
    """
    cdef:
        size_t size = path.shape[0], m = scan.problem.levels, i
        ndarray workspace = workspace_of(scan)
        double *work = doubles(workspace)
        size_t *paths
        size_t *lefts
        object bit_generator = rng.bit_generator
        bitgen_t *bits = bitgen_of(bit_generator)

    check_given(path, 2, NPY_UINTP)
    check_given(left, 1, NPY_UINTP)
    paths, lefts = places(path), places(left)
    if path.shape[1] != m or left.shape[0] != size or first >= m:
        raise ValueError("paths must have all levels, and each must have some left")
    for i in range(size):
        if lefts[i] > m or (lefts[i] < m and paths[i * m + lefts[i]] >= scan.problem.intervals):
            raise ValueError("paths must be of intervals that there are")
    with bit_generator.lock, nogil:
        for i in range(size):
            if lefts[i] > first:
                lefts[i] = dpq_path_go_on(&scan.problem, scan.decay, &scan.rows, first, lefts[i],
                                          bits, work, paths + i * m)


def points_lattice(ndarray path not None, ndarray left not None, ndarray width not None,
                   rng not None):
    """Lattice points inside the paths' intervals, int64 of the paths' shape."""
    cdef:
        size_t size = path.shape[0], m = path.shape[1]
        const int64_t *lefts = given_integers(left)
        const double *widths = given_doubles(width)
        const size_t *paths = places(path)
        ndarray points = new_table(size, m, NPY_INT64)
        int64_t *point = integers(points)
        object bit_generator = rng.bit_generator
        bitgen_t *bits = bitgen_of(bit_generator)

    check_given(path, 2, NPY_UINTP)
    with bit_generator.lock, nogil:
        dpq_path_points_lattice(m, size, paths, lefts, widths, bits, point)
    return points


def points_continuous(ndarray path not None, ndarray left not None, ndarray width not None,
                      rng not None):
    """Numbers inside the paths' intervals, float64 of the paths' shape."""
    cdef:
        size_t size = path.shape[0], m = path.shape[1]
        const double *lefts = given_doubles(left)
        const double *widths = given_doubles(width)
        const size_t *paths = places(path)
        ndarray points = new_table(size, m, NPY_FLOAT64)
        double *point = doubles(points)
        object bit_generator = rng.bit_generator
        bitgen_t *bits = bitgen_of(bit_generator)

    check_given(path, 2, NPY_UINTP)
    with bit_generator.lock, nogil:
        dpq_path_points_continuous(m, size, paths, lefts, widths, bits, point)
    return points
