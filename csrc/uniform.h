/* Random bits turned into the few variates that the mechanisms need. */
#ifndef DPQ_UNIFORM_H
#define DPQ_UNIFORM_H

#include <stddef.h>
#include <stdint.h>

#include <numpy/random/bitgen.h>

/* ln V for V uniform on (0, 1), with full relative precision of V near zero.
 *
 *   rng          IN OUT, the caller holds its lock
 *
 * Draws     one 64-bit word; another while all bits so far are zero, and one more if fewer than
 *           52 bits follow the leading one. Gives up on zeros after 65536 bits.
 * Returns   a number < 0; V itself may be far below the smallest float64.
 * Accuracy  V is a random exponent and a 53-bit mantissa: events of probability 2^-1000 happen
 *           with that probability. A 53-bit uniform would cut them to nothing.
 */
double
dpq_uniform_log(bitgen_t *rng);

/* ln V if it is below `limit`; else it may be any number from `limit` up, for less work.
 *
 * Draws     as dpq_uniform_log.
 */
double
dpq_uniform_log_below(double limit, bitgen_t *rng);

/* V itself, uniform on (0, 1), with full relative precision near zero; 0 below 2^-1022.
 *
 * Draws     as dpq_uniform_log, in the same order.
 */
double
dpq_uniform_fine(bitgen_t *rng);

/* A number in [0, 1): 53 bits, one 64-bit word. */
double
dpq_uniform_unit(bitgen_t *rng);

/* An integer uniform on {0, ..., n - 1}, exactly, by rejection.
 *
 *   n            n >= 1 (not checked)
 *   rng          IN OUT, the caller holds its lock
 *
 * Draws     one word per try, fewer than two tries on average; none for n = 1.
 */
uint64_t
dpq_uniform_below(uint64_t n, bitgen_t *rng);

/* A multiset of k of the integers {0, ..., w - 1}, all C(w + k - 1, k) equally likely.
 *
 *   k            size of the multiset
 *   w            w >= 1, w + k - 1 < 2^63 (not checked)
 *   rng          IN OUT, the caller holds its lock
 *   drawn        OUT, length k, ascending
 *
 * Stars and bars: a uniform k-subset of {0, ..., w + k - 2} (Floyd's algorithm), minus 0..k-1.
 * Draws     k times dpq_uniform_below.
 * Cost      O(k^2) moves, no allocation.
 */
void
dpq_uniform_multiset(size_t k, uint64_t w, bitgen_t *rng, int64_t *drawn);

#endif
