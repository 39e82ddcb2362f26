#include "uniform.h"

#include <math.h>

#define LN2 0.693147180559945309417
#define MAX_ZERO_BITS 65536 /* a generator stuck at zero must not hang the caller */

static uint64_t
next_word(bitgen_t *rng)
{
    return rng->next_uint64(rng->state);
}

static int
leading_zeros(uint64_t word)
{
#if (defined(__GNUC__) || defined(__clang__)) && !defined(DPQ_PORTABLE)
    return __builtin_clzll(word);
#else
    int zeros = 0;

    while (!(word >> 63)) {
        word <<= 1;
        zeros++;
    }
    return zeros;
#endif
}

/* V = mantissa * 2^-exponent, mantissa in [0.5, 1). */
static double
next_uniform(bitgen_t *rng, int *exponent)
{
    int before = 0, zeros;
    uint64_t word = next_word(rng);

    while (word == 0 && before < MAX_ZERO_BITS) {
        before += 64;
        word = next_word(rng);
    }
    if (word == 0) {
        word = 1;
    }
    zeros = leading_zeros(word);
    word <<= zeros;
    if (zeros > 11) { /* fewer than 52 bits follow the leading one */
        word |= next_word(rng) >> (64 - zeros);
    }
    *exponent = before + zeros;
    return (double)(word >> 11) * 0x1p-53; /* 53 bits, the top one set */
}

double
dpq_uniform_log(bitgen_t *rng)
{
    return dpq_uniform_log_below(INFINITY, rng);
}

double
dpq_uniform_log_below(double limit, bitgen_t *rng)
{
    int exponent;
    double mantissa = next_uniform(rng, &exponent);
    double least = -(double)(exponent + 1) * LN2; /* the mantissa is at least a half */

    return least >= limit ? least : log(mantissa) - (double)exponent * LN2;
}

double
dpq_uniform_fine(bitgen_t *rng)
{
    int exponent;
    double mantissa = next_uniform(rng, &exponent);

    if (exponent < 64) { /* almost always: without a library call */
        return mantissa / (double)((uint64_t)1 << exponent);
    }
    return exponent <= 1021 ? ldexp(mantissa, -exponent) : 0.0;
}

double
dpq_uniform_unit(bitgen_t *rng)
{
    return (double)(next_word(rng) >> 11) * 0x1p-53;
}

uint64_t
dpq_uniform_below(uint64_t n, bitgen_t *rng)
{
    uint64_t mask = n - 1, drawn;

    if (n == 1) {
        return 0;
    }
    for (int shift = 1; shift < 64; shift *= 2) { /* all bits below the leading one */
        mask |= mask >> shift;
    }
    do {
        drawn = next_word(rng) & mask;
    } while (drawn >= n);
    return drawn;
}

void
dpq_uniform_multiset(size_t k, uint64_t w, bitgen_t *rng, int64_t *drawn)
{
    for (size_t i = 0; i < k; i++) {
        /* Floyd: i elements chosen from {0, ..., w + i - 2}; make it i + 1 from {0, ..., w + i - 1} */
        int64_t newest = (int64_t)(w + i - 1);
        int64_t value = (int64_t)dpq_uniform_below(w + i, rng);
        size_t at = i;

        while (at > 0 && drawn[at - 1] > value) {
            at--;
        }
        if (at > 0 && drawn[at - 1] == value) { /* taken: the newest is not, and is the largest */
            drawn[i] = newest;
            continue;
        }
        for (size_t move = i; move > at; move--) {
            drawn[move] = drawn[move - 1];
        }
        drawn[at] = value;
    }
    for (size_t i = 0; i < k; i++) {
        drawn[i] -= (int64_t)i;
    }
}
