/* Discrete noise by integers alone: no rounding between the random bits and the draw. */
#ifndef DPQ_NOISE_H
#define DPQ_NOISE_H

#include <stddef.h>
#include <stdint.h>

#include <numpy/random/bitgen.h>

/* Numerators and denominators lie below 2^DPQ_NOISE_BITS: 2^18 of them fit into 128 bits. */
#define DPQ_NOISE_BITS 108

/* A rational number >= 0, in any terms; the lowest are the fastest. */
typedef struct {
    uint64_t numerator[2];   /* low word, high word */
    uint64_t denominator[2]; /* low word, high word; not 0 */
} dpq_noise_ratio;

/* `size` draws that are 1 with probability exp(-(whole + part)), else 0.
 *
 *   whole, part  the exponent in two, part <= 1
 *   rng          IN OUT, the caller holds its lock
 *   drawn        OUT, length size
 *
 * Sizes and limits are not checked, here and below. A generator stuck at zero ends every loop at
 * once: the draws are then all 0, except for an exponent of 0, which always gives 1.
 *
 * Draws     words, taken apart into as many bits as each decision needs; what is left of the
 *           last word is dropped. About three bytes per draw, and as many for a whole.
 * Cost      O(size) on average, no allocation, reentrant.
 * Accuracy  exact.
 */
void
dpq_noise_bernoulli(uint64_t whole, const dpq_noise_ratio *part, size_t size, bitgen_t *rng,
                    uint8_t *drawn);

/* `size` integers k with probability proportional to exp(-|k| / scale).
 *
 *   scale        0 < scale <= 2^53
 *
 * Draws     as above: five bytes and an integer below the numerator per try on average; one try,
 *           up to two for scale << 1.
 * Accuracy  exact for |k| < 1023 scale; what lies beyond, e^-1023 < 2^-1475 of the law, stays
 *           below 1024 scale.
 */
void
dpq_noise_laplace(const dpq_noise_ratio *scale, size_t size, bitgen_t *rng, int64_t *drawn);

/* `size` integers k with probability proportional to exp(-k^2 / (2 sigma^2)).
 *
 *   sigma        0 < sigma <= 2^53
 *
 * Draws     as above: about ten bytes and an integer below sigma per try on average; fewer than
 *           six tries.
 * Accuracy  exact for |k| < 1024 sigma; what lies beyond, less than 2^-700000 of the law, is left
 *           out.
 */
void
dpq_noise_gaussian(const dpq_noise_ratio *sigma, size_t size, bitgen_t *rng, int64_t *drawn);

#endif
