#include "chacha.h"

#include <string.h>

#include "vector.h"

#define DOUBLE_ROUNDS 10

/* One word of so many blocks. */
#ifdef DPQ_VECTORS
typedef uint32_t blocks __attribute__((vector_size(DPQ_CHACHA_BLOCKS * 4)));
#define AT_ONCE DPQ_CHACHA_BLOCKS
#else
typedef uint32_t blocks;
#define AT_ONCE 1
#endif

#define ROTATED(x, by) (((x) << (by)) | ((x) >> (32 - (by))))
#define QUARTER_ROUND(a, b, c, d) \
    do {                          \
        x[a] += x[b];             \
        x[d] ^= x[a];             \
        x[d] = ROTATED(x[d], 16); \
        x[c] += x[d];             \
        x[b] ^= x[c];             \
        x[b] = ROTATED(x[b], 12); \
        x[a] += x[b];             \
        x[d] ^= x[a];             \
        x[d] = ROTATED(x[d], 8);  \
        x[c] += x[d];             \
        x[b] ^= x[c];             \
        x[b] = ROTATED(x[b], 7);  \
    } while (0)

/* stream[16 words][DPQ_CHACHA_BLOCKS], given the state that blocks begin with. */
DPQ_VECTORIZED static void
make_blocks(uint32_t state[16][DPQ_CHACHA_BLOCKS], uint32_t stream[16][DPQ_CHACHA_BLOCKS])
{
    for (size_t block = 0; block < DPQ_CHACHA_BLOCKS; block += AT_ONCE) {
        blocks x[16], sum;

        for (size_t i = 0; i < 16; i++) {
            memcpy(&x[i], &state[i][block], sizeof x[i]);
        }
        for (int round = 0; round < DOUBLE_ROUNDS; round++) {
            QUARTER_ROUND(0, 4, 8, 12);
            QUARTER_ROUND(1, 5, 9, 13);
            QUARTER_ROUND(2, 6, 10, 14);
            QUARTER_ROUND(3, 7, 11, 15);
            QUARTER_ROUND(0, 5, 10, 15);
            QUARTER_ROUND(1, 6, 11, 12);
            QUARTER_ROUND(2, 7, 8, 13);
            QUARTER_ROUND(3, 4, 9, 14);
        }
        for (size_t i = 0; i < 16; i++) {
            memcpy(&sum, &state[i][block], sizeof sum);
            sum += x[i];
            memcpy(&stream[i][block], &sum, sizeof sum);
        }
    }
}

static void
refill(dpq_chacha *chacha)
{
    static const uint32_t constant[4] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
    uint32_t state[16][DPQ_CHACHA_BLOCKS], stream[16][DPQ_CHACHA_BLOCKS];

    for (size_t block = 0; block < DPQ_CHACHA_BLOCKS; block++) {
        uint64_t counter = chacha->counter + block;

        for (size_t i = 0; i < 4; i++) {
            state[i][block] = constant[i];
        }
        for (size_t i = 0; i < 8; i++) {
            state[4 + i][block] = chacha->key[i];
        }
        state[12][block] = (uint32_t)counter;
        state[13][block] = (uint32_t)(counter >> 32);
        state[14][block] = 0;
        state[15][block] = 0;
    }
    make_blocks(state, stream);
    memcpy(chacha->word, stream, sizeof stream);
    chacha->counter += DPQ_CHACHA_BLOCKS;
    chacha->used = 0;
}

void
dpq_chacha_begin(dpq_chacha *chacha, bitgen_t *rng)
{
    for (size_t i = 0; i < 8; i += 2) {
        uint64_t word = rng->next_uint64(rng->state);

        chacha->key[i] = (uint32_t)word;
        chacha->key[i + 1] = (uint32_t)(word >> 32);
    }
    chacha->counter = 0;
    chacha->used = DPQ_CHACHA_WORDS;
}

void
dpq_chacha_take(dpq_chacha *chacha, size_t n, uint64_t *word)
{
    while (n > 0) {
        size_t left, size;

        if (chacha->used == DPQ_CHACHA_WORDS) {
            refill(chacha);
        }
        left = DPQ_CHACHA_WORDS - chacha->used;
        size = n < left ? n : left;
        memcpy(word, chacha->word + chacha->used, size * sizeof *word);
        chacha->used += size;
        word += size;
        n -= size;
    }
}

static uint64_t
next_uint64(void *state)
{
    dpq_chacha *chacha = state;

    if (chacha->used == DPQ_CHACHA_WORDS) {
        refill(chacha);
    }
    return chacha->word[chacha->used++];
}

static uint32_t
next_uint32(void *state)
{
    return (uint32_t)(next_uint64(state) >> 32);
}

static double
next_double(void *state)
{
    return (double)(next_uint64(state) >> 11) * 0x1p-53;
}

bitgen_t
dpq_chacha_bits(dpq_chacha *chacha)
{
    return (bitgen_t){.state = chacha,
                      .next_uint64 = next_uint64,
                      .next_uint32 = next_uint32,
                      .next_double = next_double,
                      .next_raw = next_uint64};
}
