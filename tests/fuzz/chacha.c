#include "chacha.h"

#include "fuzz.h"

#define MOST_WORDS 300

static uint32_t
rotated(uint32_t x, int by)
{
    return x << by | x >> (32 - by);
}

static void
quarter_round(uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d)
{
    *a += *b;
    *d = rotated(*d ^ *a, 16);
    *c += *d;
    *b = rotated(*b ^ *c, 12);
    *a += *b;
    *d = rotated(*d ^ *a, 8);
    *c += *d;
    *b = rotated(*b ^ *c, 7);
}

/* One block, as RFC 8439 has it in section 2.3.1. */
static void
plain_block(const uint32_t *key, uint64_t counter, uint32_t *block)
{
    uint32_t state[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};

    memcpy(state + 4, key, 32);
    state[12] = (uint32_t)counter;
    state[13] = (uint32_t)(counter >> 32);
    memcpy(block, state, sizeof state);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 4; i++) { /* columns, then diagonals */
            int by = round % 2;

            quarter_round(block + i, block + 4 + (i + by) % 4, block + 8 + (i + 2 * by) % 4,
                          block + 12 + (i + 3 * by) % 4);
        }
    }
    for (int i = 0; i < 16; i++) {
        block[i] += state[i];
    }
}

/* Words taken a few at a time are those of the blocks, in the order of the contract. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size, 1}, same;
    bitgen_t rng = fuzz_generator(&in), bits;
    dpq_chacha chacha;
    uint32_t key[8], block[16], expected[16][DPQ_CHACHA_BLOCKS];
    uint64_t word[MOST_WORDS];
    size_t taken = 0, total = 0;

    same = in;
    for (size_t i = 0; i < 8; i += 2) {
        uint64_t both = fuzz_bytes(&same, 8);

        key[i] = (uint32_t)both;
        key[i + 1] = (uint32_t)(both >> 32);
    }
    dpq_chacha_begin(&chacha, &rng);
    CHECK(same.left == in.left && same.state == in.state);
    if (fuzz_bit(&in)) {
        chacha.counter = fuzz_bytes(&in, 8);
    }
    same.state = chacha.counter;
    bits = dpq_chacha_bits(&chacha);
    while (total < 4 * DPQ_CHACHA_WORDS) {
        size_t n = fuzz_bit(&in) ? (size_t)fuzz_between(&in, 0, MOST_WORDS) : 1;

        if (n == 1) {
            word[0] = bits.next_uint64(bits.state);
        }
        else {
            dpq_chacha_take(&chacha, n, word);
        }
        for (size_t i = 0; i < n; i++, taken++, total++) {
            taken %= DPQ_CHACHA_WORDS;
            if (taken == 0) {
                for (size_t b = 0; b < DPQ_CHACHA_BLOCKS; b++) {
                    plain_block(key, same.state++, block);
                    for (size_t w = 0; w < 16; w++) {
                        expected[w][b] = block[w];
                    }
                }
            }
            CHECK(memcmp(word + i, (const char *)expected + 8 * taken, 8) == 0);
        }
    }
    CHECK(bits.next_uint32(bits.state) <= UINT32_MAX);
    CHECK(bits.next_double(bits.state) < 1.0);
    return 0;
}
