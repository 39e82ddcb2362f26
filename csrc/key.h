/* float64 numbers as integers in the same order, and back. */
#ifndef DPQ_KEY_H
#define DPQ_KEY_H

#include <stdint.h>
#include <string.h>

/* Key of a number that is not NaN; -0 counts as 0. */
static inline int64_t
dpq_key_of(double value)
{
    int64_t bits;

    value += 0.0; /* -0 becomes 0 */
    memcpy(&bits, &value, sizeof bits);
    /* negative numbers: all bits but the sign the other way round */
    return bits ^ (int64_t)((uint64_t)(bits >> 63) >> 1);
}

/* The number that has this key. */
static inline double
dpq_key_value(int64_t key)
{
    int64_t bits = key ^ (int64_t)((uint64_t)(key >> 63) >> 1);
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
