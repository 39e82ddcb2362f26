"""The halting streams of csrc/halting.h."""

import numpy as np

from dpq_fast._kernels.bitgen cimport bitgen_of
from dpq_fast._kernels.buffers cimport given_column, integers
from dpq_fast._kernels.csrc cimport (
    DPQ_HALTING_EXPONENTIAL,
    DPQ_HALTING_GUMBEL,
    DPQ_HALTING_LAPLACE,
    dpq_column,
    dpq_halting,
    dpq_halting_advance,
    dpq_halting_ask,
    dpq_halting_confirm,
    dpq_halting_noise,
    dpq_halting_start,
    int64_t,
    size_t,
)
from numpy cimport ndarray
from numpy.random cimport bitgen_t

cdef dict NOISES = {
    "exponential": DPQ_HALTING_EXPONENTIAL,
    "laplace": DPQ_HALTING_LAPLACE,
    "gumbel": DPQ_HALTING_GUMBEL,
}


cdef class Halting:
    """One stream of queries, of which any number is asked at a time."""

    cdef:
        dpq_halting state
        object bit_generator  # keeps the capsule alive
        bitgen_t *bits

    def __cinit__(self, str noise not None, double rate1, double rate2, rng not None):
        cdef dpq_halting_noise code = NOISES[noise]

        self.bit_generator = rng.bit_generator
        self.bits = bitgen_of(self.bit_generator)
        with self.bit_generator.lock, nogil:
            dpq_halting_start(code, rate1, rate2, self.bits, &self.state)

    def advance(self, const double[::1] value not None, const int64_t[::1] length=None):
        """Queries passed since the start when it halts, -1 if it passes all of these.

        `value` holds query minus threshold, `length` how often each is asked (default: once).
        """
        cdef:
            size_t runs = value.shape[0]
            const int64_t *lengths = NULL
            int64_t step = -1

        if length is not None:
            if length.shape[0] != value.shape[0]:
                raise ValueError("there must be one length for each value")
            lengths = &length[0] if runs > 0 else NULL
        if runs > 0:
            with self.bit_generator.lock, nogil:
                dpq_halting_advance(&self.state, runs, &value[0], lengths, self.bits, &step)
        return step

    def confirm(self, double value, int64_t step):
        """Whether the query at `step` halts, where `advance` halted at a bound of it; else go on.

        `value` is that query minus the threshold, at most the bound.
        """
        cdef bint halted

        with self.bit_generator.lock, nogil:
            halted = dpq_halting_confirm(&self.state, value, step, self.bits)
        return halted

    def ask(self, ndarray queries not None, double threshold, size_t first=0):
        """The same as `advance` of the queries from `first` on, minus the threshold, once each.

        `queries` are a column of any type that kernels read. Many are passed at once; draws are
        the same where a column is cut at a multiple of 256.
        """
        cdef:
            dpq_column column = given_column(queries)
            size_t n = queries.shape[0]
            int64_t step = -1

        with self.bit_generator.lock, nogil:
            dpq_halting_ask(&self.state, first, n, &column, threshold, self.bits, &step)
        return step

    def halts_at(self, double value):
        """Whether it halts at this one query, minus the threshold."""
        cdef:
            int64_t step
            bint halted

        with self.bit_generator.lock, nogil:
            halted = dpq_halting_advance(&self.state, 1, &value, NULL, self.bits, &step)
        return halted


def draw(str noise not None, double rate1, double rate2, const double[::1] value not None,
         const int64_t[::1] length not None, size_t size, rng not None):
    """Steps at which `size` independent streams of the same runs halt, int64; -1 for never."""
    cdef:
        size_t runs = value.shape[0], i
        ndarray out = np.full(size, -1, dtype=np.int64)
        int64_t *steps = integers(out)
        object bit_generator = rng.bit_generator
        bitgen_t *bits = bitgen_of(bit_generator)
        dpq_halting_noise code = NOISES[noise]
        dpq_halting state

    if length.shape[0] != value.shape[0]:
        raise ValueError("there must be one length for each value")
    if runs > 0:
        with bit_generator.lock, nogil:
            for i in range(size):
                dpq_halting_start(code, rate1, rate2, bits, &state)
                dpq_halting_advance(&state, runs, &value[0], &length[0], bits, &steps[i])
    return out
