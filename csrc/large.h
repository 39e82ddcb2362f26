/* Non-negative numbers with a large exponent of their own, for sums of products that rarely need it:
 * where exponents are equal, as they mostly are, these cost little more than float64. */
#ifndef DPQ_LARGE_H
#define DPQ_LARGE_H

#include <math.h>
#include <stdint.h>

#include "decay.h"
#include "wide.h"

#define DPQ_LARGE_LOG_BITS 9
#define DPQ_LARGE_BITS (1 << DPQ_LARGE_LOG_BITS) /* the number is digits 2^(512 exponent), */
#define DPQ_LARGE_UNIT 0x1p512
#define DPQ_LARGE_MOST 0x1p256    /* digits below this */
#define DPQ_LARGE_LEAST DPQ_DECAY_NEAR /* and not below this, or 0 */
#define DPQ_LARGE_FAR (INT64_C(1) * DPQ_DECAY_FAR * DPQ_DECAY_TABLE)

typedef struct {
    double digits;
    int64_t exponent;
} dpq_large;

#define DPQ_LARGE_ZERO ((dpq_large){0.0, 0})

/* Whether digits are in range, and not 0: one comparison tells. */
static inline int
dpq_large_is_round(double digits)
{
    const uint64_t least = 1023 - DPQ_LARGE_BITS / 2;

    return (dpq_wide_bits(digits) >> 52) - least < DPQ_LARGE_BITS;
}

/* Digits in (2^-1023, 2^1023) brought into range. */
static inline dpq_large
dpq_large_round(double digits, int64_t exponent)
{
    if (dpq_large_is_round(digits)) { /* nearly all are */
        return (dpq_large){digits, exponent};
    }
    for (int i = 0; i < 2; i++) { /* twice will do */
        if (digits >= DPQ_LARGE_MOST) {
            digits *= 1.0 / DPQ_LARGE_UNIT;
            exponent++;
        }
        else if (digits < DPQ_LARGE_LEAST && digits > 0.0) {
            digits *= DPQ_LARGE_UNIT;
            exponent--;
        }
    }
    return (dpq_large){digits, exponent};
}

/* Any finite x >= 0. */
static inline dpq_large
dpq_large_of(double x)
{
    return dpq_large_round(x, 0);
}

static inline dpq_large
dpq_large_mul(dpq_large a, dpq_large b)
{
    return dpq_large_round(a.digits * b.digits, a.exponent + b.exponent);
}

/* A product whose digits may be out of range, by as much as these are, for dpq_large_add alone. */
static inline dpq_large
dpq_large_term(dpq_large a, dpq_large b)
{
    return (dpq_large){a.digits * b.digits, a.exponent + b.exponent};
}

/* One of them may be a term. */
static inline dpq_large
dpq_large_add(dpq_large a, dpq_large b)
{
    int64_t apart = a.exponent - b.exponent;

    if (apart == 0) {
        return dpq_large_round(a.digits + b.digits, a.exponent);
    }
    if (a.digits == 0.0 || (b.digits > 0.0 && apart < -1)) { /* below the last bit */
        return dpq_large_round(b.digits, b.exponent);
    }
    if (b.digits == 0.0 || apart > 1) {
        return dpq_large_round(a.digits, a.exponent);
    }
    if (apart > 0) {
        return dpq_large_round(a.digits + b.digits * (1.0 / DPQ_LARGE_UNIT), a.exponent);
    }
    return dpq_large_round(b.digits + a.digits * (1.0 / DPQ_LARGE_UNIT), b.exponent);
}

static inline int
dpq_large_less(dpq_large a, dpq_large b)
{
    if (a.digits == 0.0 || b.digits == 0.0 || a.exponent == b.exponent) {
        return a.digits < b.digits;
    }
    return a.exponent < b.exponent;
}

/* ln of it, -inf of 0. */
static inline double
dpq_large_log(dpq_large x)
{
    return log(x.digits) + (double)x.exponent * (DPQ_LARGE_BITS * DPQ_LN2);
}

static inline dpq_large
dpq_large_of_wide(dpq_wide x)
{
    int64_t exponent = (x.exponent + DPQ_LARGE_BITS / 2) >> DPQ_LARGE_LOG_BITS;

    return (dpq_large){x.mantissa * dpq_wide_power(exponent * DPQ_LARGE_BITS - x.exponent),
                       exponent};
}

static inline dpq_wide
dpq_large_to_wide(dpq_large x)
{
    return dpq_wide_of(x.digits, x.exponent * DPQ_LARGE_BITS);
}

/* exp(-rate * times), both >= 0; see dpq_wide_exp. */
static inline dpq_large
dpq_large_exp(double rate, double times)
{
    if (rate * times < 170.0) {
        return (dpq_large){exp(-rate * times), 0};
    }
    return dpq_large_of_wide(dpq_wide_exp(rate, times));
}

/* Tabulate multiples of DPQ_DECAY_TABLE, and of all of these, up to `largest`, too. */
static inline void
dpq_large_fill_far(dpq_decay *decay, int64_t largest)
{
    if (decay->size < DPQ_DECAY_TABLE) {
        return;
    }
    for (; decay->far < DPQ_DECAY_FAR && decay->far <= largest / DPQ_DECAY_TABLE; decay->far++) {
        dpq_large x = dpq_large_exp(decay->rate, (double)(decay->far * DPQ_DECAY_TABLE));

        decay->multiple[decay->far] = x.digits;
        decay->power[decay->far] = x.exponent;
    }
    if (decay->far < DPQ_DECAY_FAR) { /* all of which multiples of them are multiplied by */
        return;
    }
    for (; decay->farther < DPQ_DECAY_FARTHER && decay->farther <= largest / DPQ_LARGE_FAR; decay->farther++) {
        dpq_large x = dpq_large_exp(decay->rate, (double)(decay->farther * DPQ_LARGE_FAR));

        decay->multiple_of_far[decay->farther] = x.digits;
        decay->power_of_far[decay->farther] = x.exponent;
    }
}

/* exp(-rate * k) for an integer k >= 0. */
static inline dpq_large
dpq_large_decay(const dpq_decay *decay, int64_t k)
{
    if (k < decay->near) {
        return (dpq_large){decay->table[k], 0};
    }
    if (k < decay->far * DPQ_DECAY_TABLE) {
        double rest = decay->table[k % DPQ_DECAY_TABLE];

        if (rest >= DPQ_LARGE_LEAST) {
            return dpq_large_round(decay->multiple[k / DPQ_DECAY_TABLE] * rest,
                                   decay->power[k / DPQ_DECAY_TABLE]);
        }
    }
    else if (k < decay->farther * DPQ_LARGE_FAR) {
        int64_t far = k % DPQ_LARGE_FAR / DPQ_DECAY_TABLE;
        double rest = decay->table[k % DPQ_DECAY_TABLE];

        if (rest >= DPQ_LARGE_LEAST) {
            dpq_large near = dpq_large_round(decay->multiple[far] * rest, decay->power[far]);

            return dpq_large_round(decay->multiple_of_far[k / DPQ_LARGE_FAR] * near.digits,
                                   decay->power_of_far[k / DPQ_LARGE_FAR] + near.exponent);
        }
    }
    return dpq_large_exp(decay->rate, (double)k);
}

/* x exp(-rate * k), as dpq_large_term has it. */
static inline dpq_large
dpq_large_fading(const dpq_decay *decay, dpq_large x, int64_t k)
{
    if (k < decay->near) {
        return (dpq_large){x.digits * decay->table[k], x.exponent};
    }
    return dpq_large_term(x, dpq_large_decay(decay, k));
}

#endif
