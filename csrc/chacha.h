/* The key stream of ChaCha20, many blocks at a time: random bits for kernels that take a lot of them. */
#ifndef DPQ_CHACHA_H
#define DPQ_CHACHA_H

#include <stddef.h>
#include <stdint.h>

#include <numpy/random/bitgen.h>

#define DPQ_CHACHA_BLOCKS 8                       /* made together, of 16 words of 32 bits each */
#define DPQ_CHACHA_WORDS (DPQ_CHACHA_BLOCKS * 8) /* of 64 bits, in these blocks */

typedef struct {
    uint32_t key[8];
    uint64_t counter; /* number of the next block */
    size_t used;      /* words that were taken */
    uint64_t word[DPQ_CHACHA_WORDS];
} dpq_chacha;

/* Begin a stream at block 0, with a nonce of zeros (RFC 8439, section 2.3, and a counter that goes on
 * beyond 32 bits, as in Bernstein's paper).
 *
 *   chacha       OUT
 *   rng          IN OUT, the caller holds its lock: what the key is drawn from
 *
 * Draws     four 64-bit words: the key's, the lower half of each first.
 */
void
dpq_chacha_begin(dpq_chacha *chacha, bitgen_t *rng);

/* The next n words of 64 bits.
 *
 * Blocks are made DPQ_CHACHA_BLOCKS at a time and given word by word: first the first words of all
 * blocks, then their second ones. Two words of neighboring blocks make one of 64 bits, in the
 * machine's order.
 */
void
dpq_chacha_take(dpq_chacha *chacha, size_t n, uint64_t *word);

/* The same stream as a generator; `chacha` must outlive it. */
bitgen_t
dpq_chacha_bits(dpq_chacha *chacha);

#endif
