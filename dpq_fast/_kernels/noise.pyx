"""The discrete noise of csrc/noise.h; each call fills an array with independent draws."""

from dpq_fast._kernels.bitgen cimport bitgen_of
from dpq_fast._kernels.csrc cimport (
    DPQ_NOISE_BITS,
    dpq_noise_bernoulli,
    dpq_noise_gaussian,
    dpq_noise_laplace,
    dpq_noise_ratio,
    int64_t,
    size_t,
    uint64_t,
    uint8_t,
)
from numpy.random cimport bitgen_t

# Numerators and denominators lie below it; in Python's integers, for C has none as long.
LIMIT = (<object>1) << DPQ_NOISE_BITS


cdef dpq_noise_ratio _ratio(object numerator, object denominator) except *:
    """As the kernels take it: words that do not fit are an OverflowError."""
    cdef dpq_noise_ratio ratio

    ratio.numerator[1], ratio.numerator[0] = divmod(numerator, 1 << 64)
    ratio.denominator[1], ratio.denominator[0] = divmod(denominator, 1 << 64)
    return ratio


def bernoulli(uint64_t whole, numerator, denominator, uint8_t[::1] out not None, rng not None):
    """True with probability exp(-(whole + numerator / denominator)), numerator <= denominator."""
    cdef:
        dpq_noise_ratio part = _ratio(numerator, denominator)
        size_t size = out.shape[0]
        object bit_generator = rng.bit_generator
        bitgen_t *bits = bitgen_of(bit_generator)

    if size > 0:
        with bit_generator.lock, nogil:
            dpq_noise_bernoulli(whole, &part, size, bits, &out[0])


def laplace(numerator, denominator, int64_t[::1] out not None, rng not None):
    """Discrete Laplace of scale numerator / denominator, at most 2^53."""
    cdef:
        dpq_noise_ratio scale = _ratio(numerator, denominator)
        size_t size = out.shape[0]
        object bit_generator = rng.bit_generator
        bitgen_t *bits = bitgen_of(bit_generator)

    if size > 0:
        with bit_generator.lock, nogil:
            dpq_noise_laplace(&scale, size, bits, &out[0])


def gaussian(numerator, denominator, int64_t[::1] out not None, rng not None):
    """Discrete Gaussian of sigma numerator / denominator, at most 2^53."""
    cdef:
        dpq_noise_ratio sigma = _ratio(numerator, denominator)
        size_t size = out.shape[0]
        object bit_generator = rng.bit_generator
        bitgen_t *bits = bitgen_of(bit_generator)

    if size > 0:
        with bit_generator.lock, nogil:
            dpq_noise_gaussian(&sigma, size, bits, &out[0])
