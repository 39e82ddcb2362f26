/* exp(-rate * k) for the many small integers k that rank differences take. */
#ifndef DPQ_DECAY_H
#define DPQ_DECAY_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "wide.h"

#define DPQ_DECAY_TABLE 2048 /* rank differences tabulated, */
#define DPQ_DECAY_STRIDE 32  /* the table is a product of two shorter ones: two roundings */
#define DPQ_DECAY_FAR 512    /* and multiples of that, */
#define DPQ_DECAY_FARTHER 1024 /* and of these together; what is larger calls exp() */
#define DPQ_DECAY_UNIT 0x1p-512
#define DPQ_DECAY_NEAR 0x1p-256  /* products with numbers of large.h need no other exponent down to this */
#define DPQ_DECAY_LONG 0x1p-64   /* from here on a product of rate and k has lost digits */
#define DPQ_DECAY_ZERO 708.0     /* beyond this exp() is subnormal: slow, and soon 0 */

typedef struct {
    double rate;  /* per rank, >= 0 */
    int64_t size; /* entries in use, at most DPQ_DECAY_TABLE */
    int64_t near; /* the first ones that are not below DPQ_DECAY_NEAR */
    int64_t far;  /* multiples of DPQ_DECAY_TABLE in use; 0 unless the table is full, */
    int64_t farther; /* and of all of these; 0 unless they are in use */
    double table[DPQ_DECAY_TABLE];
    double multiple[DPQ_DECAY_FAR]; /* exp(-rate * DPQ_DECAY_TABLE * k), as numbers */
    int64_t power[DPQ_DECAY_FAR];   /* of large.h are: times DPQ_DECAY_UNIT^-power, power <= 0; */
    double multiple_of_far[DPQ_DECAY_FARTHER]; /* likewise */
    int64_t power_of_far[DPQ_DECAY_FARTHER];
} dpq_decay;

static inline void
dpq_decay_fill(dpq_decay *decay, double rate, int64_t largest)
{
    double fine[DPQ_DECAY_STRIDE];

    decay->rate = rate;
    decay->near = decay->far = decay->farther = 0;
    decay->size = largest < DPQ_DECAY_TABLE ? largest + 1 : DPQ_DECAY_TABLE;
    for (int i = 0; i < DPQ_DECAY_STRIDE; i++) {
        fine[i] = exp(-rate * (double)i);
    }
    for (int64_t k = 0; k < decay->size; k += DPQ_DECAY_STRIDE) {
        double coarse = rate * (double)k < DPQ_DECAY_ZERO ? exp(-rate * (double)k) : 0.0;

        for (int64_t i = 0; i < DPQ_DECAY_STRIDE && k + i < decay->size; i++) {
            decay->table[k + i] = coarse * fine[i];
            decay->near += decay->table[k + i] >= DPQ_DECAY_NEAR;
        }
    }
}

static inline double
dpq_decay_at(const dpq_decay *decay, int64_t k)
{
    int64_t far = k / DPQ_DECAY_TABLE;

    if (k < decay->size) {
        return decay->table[k];
    }
    if (decay->rate * (double)k >= DPQ_DECAY_ZERO) {
        return 0.0;
    }
    if (far < decay->far) {
        double x = decay->multiple[far] * decay->table[k % DPQ_DECAY_TABLE];

        for (int64_t power = decay->power[far]; power < 0; power++) { /* twice, at most */
            x *= DPQ_DECAY_UNIT;
        }
        return x;
    }
    return exp(-decay->rate * (double)k);
}

/* exp(-rate k), for negative k, too. */
static inline double
dpq_decay_signed(const dpq_decay *decay, int64_t k)
{
    return k < 0 ? 1.0 / dpq_decay_at(decay, -k) : dpq_decay_at(decay, k);
}

/* The same, however small, right to 1e-14. */
static inline dpq_wide
dpq_decay_wide(const dpq_decay *decay, int64_t k)
{
    if (k < decay->size && decay->table[k] > DPQ_DECAY_LONG) {
        return dpq_wide_of(decay->table[k], 0);
    }
    return dpq_wide_exp(decay->rate, (double)k);
}

#endif
