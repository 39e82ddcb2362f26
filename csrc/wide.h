/* Non-negative numbers with an exponent of their own: no under- or overflow. */
#ifndef DPQ_WIDE_H
#define DPQ_WIDE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define DPQ_LN2 0.693147180559945309417

/* The number mantissa * 2^exponent, mantissa in [1, 2) or 0. */
typedef struct {
    double mantissa;
    int64_t exponent;
} dpq_wide;

#define DPQ_WIDE_ZERO ((dpq_wide){0.0, 0})
#define DPQ_WIDE_FARTHEST 1e17 /* a loss beyond this is held there, and the exponent of a product */
#define DPQ_WIDE_LOWEST (-(INT64_C(1) << 61)) /* at the lowest: int64 must not overflow */

static inline uint64_t
dpq_wide_bits(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* The largest power of two that is no more than x, for normal x > 0. */
static inline int64_t
dpq_wide_exponent(double x)
{
    return (int64_t)(dpq_wide_bits(x) >> 52) - 1023;
}

/* x * 2^exponent, for normal x > 0. By its bits: many more of these are asked for than of frexp(), and in
 * loops that become vectors. */
static inline dpq_wide
dpq_wide_of_normal(double x, int64_t exponent)
{
    const uint64_t one = UINT64_C(1023) << 52, digits = (UINT64_C(1) << 52) - 1;
    uint64_t bits = dpq_wide_bits(x);
    dpq_wide number;

    number.exponent = dpq_wide_exponent(x) + exponent;
    bits = (bits & digits) | one;
    memcpy(&number.mantissa, &bits, sizeof bits);
    return number;
}

/* The same for any finite x >= 0. */
static inline dpq_wide
dpq_wide_of(double x, int64_t exponent)
{
    if (x >= 0x1p-1022) {
        return dpq_wide_of_normal(x, exponent);
    }
    return x > 0.0 ? dpq_wide_of_normal(x * 0x1p54, exponent - 54) : DPQ_WIDE_ZERO;
}

/* 2^-down, for down in [-1023, 1022]; 0 for 1023. */
static inline double
dpq_wide_power(int64_t down)
{
    uint64_t bits = (uint64_t)(1023 - down) << 52;
    double power;

    memcpy(&power, &bits, sizeof power);
    return power;
}

/* The same for any down >= -1023: 0 where that is too small. */
static inline double
dpq_wide_power_or_nothing(int64_t down)
{
    return dpq_wide_power(down < 1023 ? down : 1023);
}

static inline dpq_wide
dpq_wide_mul(dpq_wide a, dpq_wide b)
{
    dpq_wide product = {a.mantissa * b.mantissa, a.exponent + b.exponent};

    if (product.mantissa >= 2.0) {
        product.mantissa *= 0.5;
        product.exponent += 1;
    }
    product.exponent = product.exponent > DPQ_WIDE_LOWEST ? product.exponent : DPQ_WIDE_LOWEST;
    return product;
}

static inline dpq_wide
dpq_wide_add(dpq_wide a, dpq_wide b)
{
    dpq_wide swap;

    if (a.mantissa == 0.0) {
        return b;
    }
    if (b.mantissa == 0.0) {
        return a;
    }
    if (a.exponent < b.exponent) {
        swap = a;
        a = b;
        b = swap;
    }
    if (a.exponent - b.exponent > 64) { /* below the last bit */
        return a;
    }
    a.mantissa += b.mantissa * dpq_wide_power(a.exponent - b.exponent);
    if (a.mantissa >= 2.0) {
        a.mantissa *= 0.5;
        a.exponent += 1;
    }
    return a;
}

static inline int
dpq_wide_less(dpq_wide a, dpq_wide b)
{
    if (a.mantissa == 0.0 || b.mantissa == 0.0) {
        return a.mantissa < b.mantissa;
    }
    return a.exponent < b.exponent || (a.exponent == b.exponent && a.mantissa < b.mantissa);
}

/* exp(-rate * times), both >= 0 and finite, right to 1e-15 however large the product is: what
 * rounding takes from it is put back, and so is what ln 2 has beyond its 53 bits. */
static inline dpq_wide
dpq_wide_exp(double rate, double times)
{
    const double ln2_rest = 0x1.abc9e3b39803fp-56;
    double loss = rate * times, rounding, whole;

    if (!(loss < DPQ_WIDE_FARTHEST)) {
        loss = DPQ_WIDE_FARTHEST;
        rounding = 0.0;
    }
    else {
        rounding = fma(rate, times, -loss);
    }
    whole = floor(-loss / DPQ_LN2);
    return dpq_wide_of(exp(fma(-whole, DPQ_LN2, -loss) - fma(whole, ln2_rest, rounding)),
                       (int64_t)whole);
}

/* ln of it times 2^-exponent. */
static inline double
dpq_wide_log(dpq_wide x, int64_t exponent)
{
    return log(x.mantissa) + (double)(x.exponent - exponent) * DPQ_LN2;
}

#endif
