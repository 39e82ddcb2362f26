"""What paths weigh at most that pass each place, csrc/passing.h."""

from dpq_fast._kernels.buffers cimport (
    PyArray_DATA,
    doubles,
    given_doubles,
    given_places,
    new_doubles,
    new_table,
)
from dpq_fast._kernels.csrc cimport (
    DPQ_PASSING_APART,
    DPQ_PASSING_BLOCK,
    dpq_passing_log,
    dpq_passing_longest,
    dpq_passing_problem,
    dpq_passing_room,
    size_t,
)
from numpy cimport NPY_FLOAT32, import_array, ndarray

import_array()

# Cells of a block; nats between targets at most.
BLOCK, APART = DPQ_PASSING_BLOCK, DPQ_PASSING_APART


def log_passing(ndarray target not None, double rate, double ranks, double rest,
                ndarray rising not None, ndarray volume not None, ndarray falling not None,
                double point, ndarray first not None, ndarray end not None, ndarray heavy not None):
    """ln of what all paths weigh at most, and table of those that pass each block of each level, less that.

    Parameters
    ----------
    target : ndarray of float64, shape (m,)
    rate, ranks, rest, point : float
        c, S, where cell 0 stands, and what a point measures, or 0.
    rising, volume, falling : ndarray of float64, shape (K,)
        Of each cell for the bends -1, 0 and 1.
    first, end : ndarray of uintp, shape (m,)
        Rows have the cells first[j] <= k < end[j].
    heavy : ndarray of uintp
        Cells whose outputs are all counted, ascending.

    Returns
    -------
    float, ndarray of float32, shape (m, B)
        Row j has the blocks from first[j] / BLOCK on; -inf beyond end[j] / BLOCK.
    """
    cdef:
        dpq_passing_problem p
        Py_ssize_t j
        Py_ssize_t m = target.shape[0], cells = volume.shape[0]
        size_t block = DPQ_PASSING_BLOCK
        const double *at = given_doubles(target)
        const size_t *low = given_places(first)
        const size_t *high = given_places(end)
        const size_t *listed = given_places(heavy)
        ndarray room
        ndarray table
        double *work
        float *bounds
        double log_all

    if not (0 < m == first.shape[0] == end.shape[0]):
        raise ValueError("levels must be some, each with a row")
    if not (0 < cells == falling.shape[0] == rising.shape[0] and cells % block == 0):
        raise ValueError("cells must be some whole blocks, with volumes of all bends")
    if not (rate > 0.0 and ranks >= 1.0 and rate * ranks <= 8.0 and point >= 0.0):
        raise ValueError("cells have a rank or more, and 8 nats or less")
    for j in range(m):
        if not (low[j] < high[j] <= <size_t>cells and low[j] % block == 0 == high[j] % block):
            raise ValueError("rows are some whole blocks")
        if j > 0 and not (low[j - 1] <= low[j] and high[j - 1] <= high[j]
                          and 0.0 < rate * (at[j] - at[j - 1]) <= DPQ_PASSING_APART):
            raise ValueError("targets and rows ascend, by not too many nats")
    for j in range(heavy.shape[0]):
        if not (listed[j] < <size_t>cells and (j == 0 or listed[j - 1] < listed[j])):
            raise ValueError("heavy cells ascend")
    p.levels, p.cells, p.ranks, p.rest, p.rate = m, cells, ranks, rest, rate
    p.target, p.point = at, point
    p.volume[0], p.volume[1] = given_doubles(rising), given_doubles(volume)
    p.volume[2] = given_doubles(falling)
    p.from_, p.to = low, high
    p.heavies, p.heavy = heavy.shape[0], listed
    room = new_doubles(<Py_ssize_t>(dpq_passing_room(&p) // sizeof(double)) + 1)
    table = new_table(m, <Py_ssize_t>dpq_passing_longest(&p), NPY_FLOAT32)
    work, bounds = doubles(room), <float *>PyArray_DATA(table)
    with nogil:
        log_all = dpq_passing_log(&p, work, bounds)
    return log_all, table
