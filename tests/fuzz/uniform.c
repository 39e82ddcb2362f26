#include "uniform.h"

#include "fuzz.h"

#define MOST_DRAWN 300
#define MOST_ZERO_WORDS 1024 /* 65536 bits, then one more word */

__extension__ typedef unsigned __int128 u128;

/* A generator that gives so many zeros before the words of the input; a copy gives the same. */
typedef struct {
    fuzz_input in;
    int64_t zeros, words;
} source;

static uint64_t
next_word(void *state)
{
    source *from = state;

    from->words++;
    if (from->zeros > 0) {
        from->zeros--;
        return 0;
    }
    return fuzz_bytes(&from->in, 8);
}

static int64_t
draw_zeros(fuzz_input *in)
{
    uint64_t kind = fuzz_bytes(in, 1);

    return kind < 128   ? 0
           : kind < 192 ? 15 /* V is about 2^-1022, if the next word begins with zeros, too */
           : kind < 224 ? fuzz_between(in, 0, 20)
                        : fuzz_between(in, MOST_ZERO_WORDS - 2, MOST_ZERO_WORDS + 4);
}

/* A positive number of any length. */
static uint64_t
draw_limit(fuzz_input *in)
{
    uint64_t limit = fuzz_bytes(in, 8) >> fuzz_between(in, 0, 63);

    return limit > 0 ? limit : 1;
}

static bitgen_t
generator(source *from)
{
    bitgen_t made = {from, next_word, NULL, NULL, next_word};

    return made;
}

/* V = mantissa / 2^(53 + exponent) as the stream of bits gives it. */
static uint64_t
draw_mantissa(source *from, int *exponent)
{
    u128 bits = 0;

    *exponent = 0;
    for (int i = 0; bits == 0 && i <= MOST_ZERO_WORDS; i++) {
        bits = next_word(from);
        *exponent = 64 * i;
    }
    bits = (bits == 0 ? 1 : bits) << 64;
    if (bits >> 116 == 0) {
        bits |= next_word(from);
    }
    for (; bits >> 127 == 0; bits <<= 1) {
        ++*exponent;
    }
    return (uint64_t)(bits >> 75);
}

static void
check_numbers(source from)
{
    source logarithm = from, fine = from, unit = from;
    bitgen_t of_logarithm = generator(&logarithm), of_fine = generator(&fine);
    bitgen_t of_unit = generator(&unit);
    double got = dpq_uniform_unit(&of_unit), drawn = dpq_uniform_log(&of_logarithm);
    uint64_t word = next_word(&(source){from.in, from.zeros, 0});
    int exponent;
    uint64_t mantissa = draw_mantissa(&from, &exponent);
    long double expected = logl(ldexpl((long double)mantissa, -53)) - exponent * logl(2.0L);

    CHECK(got == ldexp((double)(word >> 11), -53) && unit.words == 1);
    CHECK(drawn < 0.0 && fabsl(drawn - expected) <= -0x1p-51L * expected);
    CHECK(dpq_uniform_fine(&of_fine) ==
          (exponent <= 1021 ? ldexp((double)mantissa, -53 - exponent) : 0.0));
    CHECK(logarithm.words == from.words && fine.words == from.words);
}

/* What is below the limit is there to the last digit, and else at least the limit. */
static void
check_limited(double limit, source from)
{
    source whole = from, limited = from;
    bitgen_t of_whole = generator(&whole), of_limited = generator(&limited);
    double drawn = dpq_uniform_log(&of_whole), found;

    limit = fuzz_bit(&from.in) ? limit : drawn + limit; /* often next to it */
    found = dpq_uniform_log_below(limit, &of_limited);
    CHECK(drawn < limit ? found == drawn : found >= limit);
    CHECK(limited.words == whole.words);
}

static uint64_t
plain_below(uint64_t n, source *from)
{
    u128 power = 1;
    uint64_t drawn;

    while (power < n) {
        power *= 2;
    }
    do {
        drawn = n == 1 ? 0 : (uint64_t)(next_word(from) % power);
    } while (drawn >= n);
    return drawn;
}

static void
check_below(uint64_t n, source from)
{
    source other = from;
    bitgen_t rng = generator(&other);

    CHECK(dpq_uniform_below(n, &rng) == plain_below(n, &from) && other.words == from.words);
}

static void
check_multiset(size_t k, uint64_t w, source from)
{
    size_t missing;
    source other = from;
    bitgen_t rng = generator(&other);
    int64_t *drawn = fuzz_room(k, sizeof *drawn), *chosen = fuzz_room(k, sizeof *chosen);

    for (size_t i = 0; i < k; i++) {
        chosen[i] = (int64_t)plain_below(w + i, &from);
        for (missing = 0; missing < i && chosen[missing] != chosen[i]; missing++) {
        }
        if (missing < i) {
            chosen[i] = (int64_t)(w + i - 1);
        }
    }
    qsort(chosen, k, sizeof *chosen, fuzz_compare_integers);
    dpq_uniform_multiset(k, w, &rng, drawn);
    for (size_t i = 0; i < k; i++) {
        CHECK(drawn[i] == chosen[i] - (int64_t)i);
        CHECK(drawn[i] >= (i > 0 ? drawn[i - 1] : 0) && (uint64_t)drawn[i] < w);
    }
    CHECK(other.words == from.words);
    free(chosen);
    free(drawn);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size, 1};
    uint64_t n = draw_limit(&in), w = draw_limit(&in);
    size_t k = fuzz_size(&in, MOST_DRAWN);
    uint64_t most = (UINT64_C(1) << 63) - k;
    double limit = fuzz_finite(&in);
    source from = {in, 0, 0};

    from.zeros = draw_zeros(&from.in);
    check_numbers(from);
    check_limited(limit, from);
    check_below(n, from);
    check_multiset(k, w < most ? w : most, from);
    return 0;
}
