#include "noise.h"

#include "fuzz.h"

#define MOST_DRAWS 300
#define MOST_WHOLE 40
#define SCALES 1024.0 /* no draw is farther out */

__extension__ typedef unsigned __int128 u128;

static u128
draw_wide(fuzz_input *in)
{
    int bits = (int)fuzz_between(in, 0, DPQ_NOISE_BITS);
    u128 number = (u128)fuzz_bytes(in, 8) << 64 | fuzz_bytes(in, 8);

    return number & (((u128)1 << bits) - 1);
}

static dpq_noise_ratio
ratio_of(u128 numerator, u128 denominator)
{
    dpq_noise_ratio made = {{(uint64_t)numerator, (uint64_t)(numerator >> 64)},
                            {(uint64_t)denominator, (uint64_t)(denominator >> 64)}};

    return made;
}

static void
check_bernoulli(fuzz_input *in)
{
    bitgen_t rng = fuzz_generator(in);
    size_t n = (size_t)fuzz_between(in, 0, MOST_DRAWS);
    uint8_t *drawn = fuzz_room(n, 1);
    u128 denominator = draw_wide(in), numerator = draw_wide(in);
    uint64_t whole = fuzz_bit(in) ? 0 : (uint64_t)fuzz_between(in, 0, MOST_WHOLE);
    dpq_noise_ratio part;

    denominator += denominator == 0;
    numerator = numerator > denominator ? denominator : numerator;
    part = ratio_of(numerator, denominator);
    dpq_noise_bernoulli(whole, &part, n, &rng, drawn);
    for (size_t i = 0; i < n; i++) {
        CHECK(drawn[i] <= 1);
        CHECK(drawn[i] == 1 || whole > 0 || numerator > 0);
    }
    /* probability exp(-2^64): never */
    dpq_noise_bernoulli(UINT64_MAX, &part, n, &rng, drawn);
    for (size_t i = 0; i < n; i++) {
        CHECK(drawn[i] == 0);
    }
    free(drawn);
}

/* Scales up to 2^53, of any terms. */
static void
check_integers(fuzz_input *in,
               void (*draw)(const dpq_noise_ratio *, size_t, bitgen_t *, int64_t *))
{
    bitgen_t rng = fuzz_generator(in);
    size_t n = (size_t)fuzz_between(in, 0, MOST_DRAWS);
    int64_t *drawn = fuzz_room(n, sizeof *drawn);
    u128 denominator = draw_wide(in), numerator = draw_wide(in);
    dpq_noise_ratio scale;
    double reach;

    denominator += denominator == 0;
    if (numerator >> 53 >= denominator) {
        numerator >>= 55; /* below 2^53 */
    }
    numerator += numerator == 0;
    scale = ratio_of(numerator, denominator);
    reach = SCALES * (double)numerator / (double)denominator * (1.0 + 0x1p-50);
    draw(&scale, n, &rng, drawn);
    for (size_t i = 0; i < n; i++) {
        CHECK(fabs((double)drawn[i]) <= reach);
    }
    free(drawn);
}

static uint64_t
zero(void *state)
{
    (void)state;
    return 0;
}

/* A generator stuck at zero ends every loop. */
static void
check_stuck(void)
{
    bitgen_t rng = {NULL, zero, NULL, NULL, zero};
    dpq_noise_ratio third = ratio_of(1, 3);
    int64_t drawn = 1;
    uint8_t bit = 1;

    dpq_noise_laplace(&third, 1, &rng, &drawn);
    CHECK(drawn == 0);
    drawn = 1;
    dpq_noise_gaussian(&third, 1, &rng, &drawn);
    CHECK(drawn == 0);
    dpq_noise_bernoulli(0, &third, 1, &rng, &bit);
    CHECK(bit == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size, 1};

    check_bernoulli(&in);
    check_integers(&in, dpq_noise_laplace);
    check_integers(&in, dpq_noise_gaussian);
    check_stuck();
    return 0;
}
