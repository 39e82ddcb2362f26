"""Variates of csrc/uniform.h."""

import numpy as np

from dpq_fast._kernels.bitgen cimport bitgen_of
from dpq_fast._kernels.csrc cimport (
    dpq_uniform_below,
    dpq_uniform_log,
    dpq_uniform_multiset,
    int64_t,
    size_t,
    uint64_t,
)
from numpy.random cimport bitgen_t


def log_uniforms(size_t size, rng not None):
    """`size` draws of ln V, V uniform on (0, 1) with full relative precision near zero."""
    cdef:
        double[::1] out = np.empty(size)
        size_t i
        object bit_generator = rng.bit_generator
        bitgen_t *bits = bitgen_of(bit_generator)

    with bit_generator.lock, nogil:
        for i in range(size):
            out[i] = dpq_uniform_log(bits)
    return out.base


def integers_below(uint64_t n, size_t size, rng not None):
    """`size` integers uniform on {0, ..., n - 1}, exactly; 1 <= n <= 2^63."""
    cdef:
        int64_t[::1] out = np.empty(size, dtype=np.int64)
        size_t i
        object bit_generator = rng.bit_generator
        bitgen_t *bits = bitgen_of(bit_generator)

    with bit_generator.lock, nogil:
        for i in range(size):
            out[i] = <int64_t>dpq_uniform_below(n, bits)
    return out.base


def multiset(size_t k, uint64_t w, rng not None):
    """A uniform multiset of k of the integers {0, ..., w - 1}, ascending; w >= 1."""
    cdef:
        int64_t[::1] out = np.empty(k, dtype=np.int64)
        object bit_generator = rng.bit_generator
        bitgen_t *bits = bitgen_of(bit_generator)

    if k > 0:
        with bit_generator.lock, nogil:
            dpq_uniform_multiset(k, w, bits, &out[0])
    return out.base
