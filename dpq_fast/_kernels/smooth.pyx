"""Smooth sensitivity of csrc/smooth.h."""

import numpy as np

from dpq_fast._kernels.buffers cimport doubles
from dpq_fast._kernels.csrc cimport dpq_smooth_log, int64_t
from numpy cimport ndarray


def log_smooth(const int64_t[::1] rank not None, const double[::1] value not None, int64_t target,
               const double[::1] t not None):
    """ln of the t-smooth sensitivities of x_target among runs of equal order statistics."""
    cdef:
        ndarray out = np.empty(t.shape[0])
        double *outs = doubles(out)
        Py_ssize_t runs = rank.shape[0]

    if runs == 0 or value.shape[0] != runs or rank[runs - 1] < target:
        raise ValueError("rank and value must be of one length, and reach the target")
    with nogil:
        dpq_smooth_log(runs, &rank[0], &value[0], target, t.shape[0], &t[0], outs)
    return out
