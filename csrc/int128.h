/* Unsigned integers of 128 bits: the compiler's own, or two words where it has none.
 *
 * clang-cl has the type, but Microsoft's library does not have its division. DPQ_PORTABLE asks for
 * two words everywhere, for tests.
 */
#ifndef DPQ_INT128_H
#define DPQ_INT128_H

#include <stdint.h>

#if defined(__SIZEOF_INT128__) && !defined(_MSC_VER) && !defined(DPQ_PORTABLE)

__extension__ typedef unsigned __int128 dpq_u128;
__extension__ typedef __int128 dpq_i128;

static inline dpq_u128
dpq_u128_of(uint64_t high, uint64_t low)
{
    return (dpq_u128)high << 64 | low;
}

static inline uint64_t
dpq_u128_high(dpq_u128 a)
{
    return (uint64_t)(a >> 64);
}

static inline uint64_t
dpq_u128_low(dpq_u128 a)
{
    return (uint64_t)a;
}

static inline int
dpq_u128_less(dpq_u128 a, dpq_u128 b)
{
    return a < b;
}

static inline int
dpq_u128_equal(dpq_u128 a, dpq_u128 b)
{
    return a == b;
}

static inline dpq_u128
dpq_u128_add(dpq_u128 a, dpq_u128 b)
{
    return a + b;
}

static inline dpq_u128
dpq_u128_sub(dpq_u128 a, dpq_u128 b)
{
    return a - b;
}

/* Shifts are by 0 to 127. */
static inline dpq_u128
dpq_u128_up(dpq_u128 a, unsigned shift)
{
    return a << shift;
}

static inline dpq_u128
dpq_u128_down(dpq_u128 a, unsigned shift)
{
    return a >> shift;
}

/* All 128 bits of a product of words. */
static inline dpq_u128
dpq_u128_product(uint64_t a, uint64_t b)
{
    return (dpq_u128)a * b;
}

static inline dpq_u128
dpq_u128_mul(dpq_u128 a, dpq_u128 b)
{
    return a * b;
}

/* b is not 0. */
static inline dpq_u128
dpq_u128_div(dpq_u128 a, dpq_u128 b)
{
    return a / b;
}

static inline dpq_u128
dpq_u128_rem(dpq_u128 a, dpq_u128 b)
{
    return a % b;
}

/* sum + a b, all of them signed, in two's complement. */
static inline dpq_u128
dpq_u128_add_signed(dpq_u128 sum, int64_t a, int64_t b)
{
    return sum + (dpq_u128)((dpq_i128)a * b);
}

#else

typedef struct {
    uint64_t high, low;
} dpq_u128;

static inline dpq_u128
dpq_u128_of(uint64_t high, uint64_t low)
{
    dpq_u128 made = {high, low};

    return made;
}

static inline uint64_t
dpq_u128_high(dpq_u128 a)
{
    return a.high;
}

static inline uint64_t
dpq_u128_low(dpq_u128 a)
{
    return a.low;
}

static inline int
dpq_u128_less(dpq_u128 a, dpq_u128 b)
{
    return a.high < b.high || (a.high == b.high && a.low < b.low);
}

static inline int
dpq_u128_equal(dpq_u128 a, dpq_u128 b)
{
    return a.high == b.high && a.low == b.low;
}

static inline dpq_u128
dpq_u128_add(dpq_u128 a, dpq_u128 b)
{
    uint64_t low = a.low + b.low;

    return dpq_u128_of(a.high + b.high + (low < a.low), low);
}

static inline dpq_u128
dpq_u128_sub(dpq_u128 a, dpq_u128 b)
{
    return dpq_u128_of(a.high - b.high - (a.low < b.low), a.low - b.low);
}

static inline dpq_u128
dpq_u128_up(dpq_u128 a, unsigned shift)
{
    if (shift >= 64) {
        return dpq_u128_of(a.low << (shift - 64), 0);
    }
    /* by 1 and 63 - shift: by 64 is undefined */
    return dpq_u128_of(a.high << shift | a.low >> 1 >> (63 - shift), a.low << shift);
}

static inline dpq_u128
dpq_u128_down(dpq_u128 a, unsigned shift)
{
    if (shift >= 64) {
        return dpq_u128_of(0, a.high >> (shift - 64));
    }
    return dpq_u128_of(a.high >> shift, a.low >> shift | a.high << 1 << (63 - shift));
}

static inline dpq_u128
dpq_u128_product(uint64_t a, uint64_t b)
{
    uint64_t low = (a & UINT32_MAX) * (b & UINT32_MAX), high = (a >> 32) * (b >> 32);
    uint64_t one = (a >> 32) * (b & UINT32_MAX), other = (a & UINT32_MAX) * (b >> 32);
    uint64_t middle = (low >> 32) + (one & UINT32_MAX) + (other & UINT32_MAX);

    return dpq_u128_of(high + (one >> 32) + (other >> 32) + (middle >> 32),
                       middle << 32 | (low & UINT32_MAX));
}

static inline dpq_u128
dpq_u128_mul(dpq_u128 a, dpq_u128 b)
{
    dpq_u128 product = dpq_u128_product(a.low, b.low);

    product.high += a.high * b.low + a.low * b.high;
    return product;
}

/* The quotient, and what is left in *rest: bit by bit, from where the numbers have equal lengths. */
static inline dpq_u128
dpq_u128_divide(dpq_u128 a, dpq_u128 b, dpq_u128 *rest)
{
    dpq_u128 quotient = {0, 0};
    unsigned shift = 0;

    if (a.high == 0 && b.high == 0) {
        *rest = dpq_u128_of(0, a.low % b.low);
        return dpq_u128_of(0, a.low / b.low);
    }
    while (b.high >> 63 == 0 && dpq_u128_less(b, a)) {
        b = dpq_u128_up(b, 1);
        shift++;
    }
    for (;; shift--) {
        quotient = dpq_u128_up(quotient, 1);
        if (!dpq_u128_less(a, b)) {
            a = dpq_u128_sub(a, b);
            quotient.low |= 1;
        }
        if (shift == 0) {
            *rest = a;
            return quotient;
        }
        b = dpq_u128_down(b, 1);
    }
}

static inline dpq_u128
dpq_u128_div(dpq_u128 a, dpq_u128 b)
{
    dpq_u128 rest;

    return dpq_u128_divide(a, b, &rest);
}

static inline dpq_u128
dpq_u128_rem(dpq_u128 a, dpq_u128 b)
{
    dpq_u128 rest;

    dpq_u128_divide(a, b, &rest);
    return rest;
}

static inline dpq_u128
dpq_u128_add_signed(dpq_u128 sum, int64_t a, int64_t b)
{
    uint64_t size_a = a < 0 ? 0 - (uint64_t)a : (uint64_t)a;
    uint64_t size_b = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
    dpq_u128 product = dpq_u128_product(size_a, size_b);

    return (a < 0) != (b < 0) ? dpq_u128_sub(sum, product) : dpq_u128_add(sum, product);
}

#endif

#endif
