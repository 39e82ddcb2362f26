/* Which values of a block are in wanted buckets. */
#ifndef DPQ_WANTED_H
#define DPQ_WANTED_H

#include <stddef.h>
#include <stdint.h>

/* Most buckets, numbers 0 to 8191; number 8192 is for what has none. */
#define DPQ_WANTED_BUCKETS 8192
/* How many places more than there are values are written, perhaps. */
#define DPQ_WANTED_SPARE 32
/* Buckets that are looked up together where the wanted ones of them are one run, or none are. */
#define DPQ_WANTED_RUN 64
#define DPQ_WANTED_RUNS (DPQ_WANTED_BUCKETS / DPQ_WANTED_RUN)

typedef struct {
    uint8_t flag[DPQ_WANTED_BUCKETS + 1]; /* 1 for the wanted ones, 0 for others */
    int fits; /* whether registers of this machine hold all flags: dpq_wanted_find takes them there */
    int runs; /* whether all of them are such runs, where they fit */
    _Alignas(64) uint8_t bit[DPQ_WANTED_BUCKETS / 8]; /* the flags, eight in a byte, where they fit */
    _Alignas(64) uint8_t run[2 * DPQ_WANTED_RUNS];    /* where in theirs they start, and their sizes */
} dpq_wanted;

/* Flags of some buckets, of which those that are not 0 are wanted; others are not.
 *
 *   buckets      at most DPQ_WANTED_BUCKETS + 1
 */
void
dpq_wanted_of(dpq_wanted *wanted, size_t buckets, const uint8_t *flag);

/* Where the wanted ones of n buckets stand, ascending.
 *
 *   n            at most 65,536
 *   bucket       IN, at most DPQ_WANTED_BUCKETS each
 *   place        OUT, length n + DPQ_WANTED_SPARE
 *
 * Returns   how many there are.
 */
size_t
dpq_wanted_find(const dpq_wanted *wanted, size_t n, const uint32_t *bucket, uint16_t *place);

#endif
