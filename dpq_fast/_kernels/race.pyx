"""The race of csrc/race.h."""

from dpq_fast._kernels.bitgen cimport bitgen_of
from dpq_fast._kernels.csrc cimport dpq_race_draw, dpq_race_draw_plain, dpq_status, size_t
from dpq_fast._kernels.status cimport check
from numpy.random cimport bitgen_t


def draw(const double[::1] log_weight not None, rng not None):
    """Index drawn with probability proportional to ``exp(log_weight)``; n >= 1."""
    cdef:
        size_t n = log_weight.shape[0]
        size_t drawn = 0
        object bit_generator = rng.bit_generator  # keeps the capsule alive
        bitgen_t *bits = bitgen_of(bit_generator)
        dpq_status status

    with bit_generator.lock, nogil:
        status = dpq_race_draw(n, &log_weight[0], bits, &drawn)
    check(status)
    return drawn


def draw_plain(const double[::1] weight not None, rng not None):
    """Index drawn with probability proportional to ``weight``, each 0 or within 2^900 of 1; n >= 1."""
    cdef:
        size_t n = weight.shape[0]
        size_t drawn
        object bit_generator = rng.bit_generator
        bitgen_t *bits = bitgen_of(bit_generator)

    with bit_generator.lock, nogil:
        drawn = dpq_race_draw_plain(n, &weight[0], bits)
    return drawn
