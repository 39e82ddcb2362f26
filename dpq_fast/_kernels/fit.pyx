"""Non-negative masses of csrc/fit.h."""

import numpy as np

from dpq_fast._kernels.buffers cimport doubles
from dpq_fast._kernels.csrc cimport dpq_fit_bend, dpq_fit_masses, dpq_fit_tree, size_t
from numpy cimport ndarray


def masses(const double[::1] leaf_count not None, const double[::1] node_count not None,
           const size_t[::1] first not None, const size_t[::1] stop not None, double total):
    """The masses of leaves, not negative, that are nearest to the counts of all nodes.

    Inner nodes from the lowest level up to the root: level l has those from ``first[l]`` on, and
    node v ends before leaf ``stop[v]``. A count that is NaN is none. The masses add up to
    `total`, which is positive.
    """
    cdef:
        Py_ssize_t leaves = leaf_count.shape[0], nodes = stop.shape[0]
        Py_ssize_t levels = first.shape[0] - 1
        dpq_fit_tree tree

    if (leaves == 0 or levels < 1 or first[0] != 0 or first[levels] != <size_t>nodes
            or node_count.shape[0] != nodes or not total > 0.0):
        raise ValueError("a tree must have leaves, a root above them, and a positive total")
    check_form(first, stop, leaves)
    cdef:
        ndarray out = np.empty(leaves)
        ndarray room = np.empty((leaves + leaves // 2) * sizeof(dpq_fit_bend), dtype=np.uint8)
        ndarray work = np.empty(2 * nodes)
        double *mass = doubles(out)
        double *offset = doubles(work)
        dpq_fit_bend *bend = <dpq_fit_bend *>doubles(room)

    tree.leaves, tree.levels = leaves, levels
    tree.first, tree.stop = &first[0], &stop[0]
    with nogil:
        dpq_fit_masses(&tree, &leaf_count[0], &node_count[0], total, mass, bend, bend + leaves,
                       offset, offset + nodes)
    return out


cdef int check_form(const size_t[::1] first, const size_t[::1] stop, size_t leaves) except -1:
    """Refuse what would make the kernel read beyond its arrays."""
    cdef:
        Py_ssize_t level
        size_t v, child, last
        bint fits = True

    for level in range(first.shape[0] - 1):
        fits &= first[level] < first[level + 1] and first[level + 1] <= <size_t>stop.shape[0]
        if not fits:
            break
        last = 0
        child = first[level - 1] if level > 0 else 0
        for v in range(first[level], first[level + 1]):
            fits &= last < stop[v]
            if level > 0:  # it ends where a node of the level below does
                while child < first[level] and stop[child] < stop[v]:
                    child += 1
                fits &= child < first[level] and stop[child] == stop[v]
            last = stop[v]
        fits &= last == leaves
    if not fits or first[first.shape[0] - 2] + 1 != first[first.shape[0] - 1]:
        raise ValueError("nodes of a level must divide the leaves, and join those of the level below")
    return 0
