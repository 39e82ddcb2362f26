/* What the fuzz targets share: structured input read from a string of bytes, and checks.
 *
 * Each target is named after a kernel and calls every function of it within its contract, with
 * arguments as bad as the contract allows, and compares what comes back with the plainest code that
 * does the same. Arrays have exactly the length the contract asks for, so that one entry too many is
 * seen by the sanitizer.
 */
#ifndef DPQ_FUZZ_H
#define DPQ_FUZZ_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <numpy/random/bitgen.h>

#define CHECK(condition)                                                                     \
    do {                                                                                     \
        if (!(condition)) {                                                                  \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);          \
            abort();                                                                         \
        }                                                                                    \
    } while (0)

/* Bytes to take; pseudorandom ones when they are used up, so that a short input fills long arrays. */
typedef struct {
    const uint8_t *at;
    size_t left;
    uint64_t state;
} fuzz_input;

static inline uint64_t
fuzz_mix(uint64_t *state) /* SplitMix64 */
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* An unsigned number of so many bytes, at most 8. */
static inline uint64_t
fuzz_bytes(fuzz_input *in, size_t size)
{
    uint64_t taken = 0;

    if (in->left < size) {
        in->left = 0;
        return fuzz_mix(&in->state) >> (64 - 8 * size);
    }
    memcpy(&taken, in->at, size);
    in->at += size;
    in->left -= size;
    return taken;
}

/* One of lo, ..., hi; from as few bytes as will do. */
static inline int64_t
fuzz_between(fuzz_input *in, int64_t lo, int64_t hi)
{
    uint64_t last = (uint64_t)hi - (uint64_t)lo;
    size_t size = last < 0x100 ? 1 : last < 0x10000 ? 2 : last < UINT64_C(1) << 32 ? 4 : 8;
    uint64_t taken = fuzz_bytes(in, size);

    return (int64_t)((uint64_t)lo + (last == UINT64_MAX ? taken : taken % (last + 1)));
}

static inline int
fuzz_bit(fuzz_input *in)
{
    return (int)(fuzz_bytes(in, 1) & 1);
}

/* Any float64: often a small one that others equal, or a special one. */
static inline double
fuzz_number(fuzz_input *in)
{
    static const double special[] = {
        0.0,      -0.0, 1.0,      -1.0,      0.5,   0x1p-1074, -0x1p-1074, 0x1p-1022,
        0x1p1023, 1e308, -1e308,   INFINITY, -INFINITY, NAN,   0x1p52,    0x1p53,
    };
    uint64_t kind = fuzz_bytes(in, 1);
    double number;

    if (kind < 64) {
        return special[kind % 16];
    }
    if (kind < 160) {
        return (double)fuzz_between(in, -128, 127) / 4.0;
    }
    if (kind < 224) {
        return ldexp((double)fuzz_between(in, -32768, 32767), (int)fuzz_between(in, -40, 40));
    }
    kind = fuzz_bytes(in, 8);
    memcpy(&number, &kind, sizeof number);
    return number;
}

static inline double
fuzz_finite(fuzz_input *in)
{
    double number = fuzz_number(in);

    return isfinite(number) ? number : 0.0;
}

static inline double
fuzz_positive(fuzz_input *in) /* and finite */
{
    double number = fabs(fuzz_finite(in));

    return number > 0.0 ? number : 1.0;
}

/* A number in [0, 1], often 0 or 1. */
static inline double
fuzz_share(fuzz_input *in)
{
    uint64_t kind = fuzz_bytes(in, 1);

    if (kind < 192) {
        return (double)(kind % 65) / 64.0;
    }
    return (double)(fuzz_bytes(in, 8) >> 11) * 0x1p-53;
}

/* Memory for exactly n objects, of arbitrary bits, to be freed. */
static inline void *
fuzz_room(size_t n, size_t size)
{
    void *room = malloc(n * size);

    CHECK(room != NULL || n == 0);
    if (room != NULL) {
        memset(room, 0xA5, n * size);
    }
    return room;
}

static inline uint64_t
fuzz_next64(void *state)
{
    return fuzz_bytes(state, 8);
}

static inline uint32_t
fuzz_next32(void *state)
{
    return (uint32_t)fuzz_bytes(state, 4);
}

static inline double
fuzz_next_double(void *state)
{
    return (double)(fuzz_next64(state) >> 11) * 0x1p-53;
}

/* A generator whose words are what is left of the input. */
static inline bitgen_t
fuzz_generator(fuzz_input *in)
{
    bitgen_t made = {in, fuzz_next64, fuzz_next32, fuzz_next_double, fuzz_next64};

    return made;
}

static inline int
fuzz_compare_numbers(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

static inline int
fuzz_compare_integers(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

    return (a > b) - (a < b);
}

/* The integer nearest to a finite number; of two, the even one. */
static inline double
fuzz_nearest(double number)
{
    double below = floor(number), rest = number - below;

    return rest > 0.5 || (rest == 0.5 && fmod(below, 2.0) != 0.0) ? below + 1.0 : below;
}

/* Often few, sometimes up to `most`. */
static inline size_t
fuzz_size(fuzz_input *in, int64_t most)
{
    return (size_t)(fuzz_bytes(in, 1) < 224 ? fuzz_between(in, 0, most < 32 ? most : 32)
                                            : fuzz_between(in, 0, most));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
