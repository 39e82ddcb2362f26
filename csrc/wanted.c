#include "wanted.h"

#include <string.h>

#include "vector.h"

#define RUN DPQ_WANTED_RUN

#ifdef DPQ_CLONES
#include <immintrin.h>

/* Tables of 128 bytes are looked up by one instruction, for 64 places at once. */
#define LOOKUPS __attribute__((target("arch=x86-64-v4,avx512vbmi,avx512vbmi2")))
#define TABLES 8 /* of 1024 flags each */
#define AT_ONCE 64

/* 32 numbers of 16 bits. */
LOOKUPS static inline __m512i
narrowed(const uint32_t *bucket)
{
    __m256i first = _mm512_cvtepi32_epi16(_mm512_loadu_si512(bucket));
    __m256i second = _mm512_cvtepi32_epi16(_mm512_loadu_si512(bucket + 16));

    return _mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1);
}

/* The low bytes of 64 numbers of 16 bits. */
LOOKUPS static inline __m512i
bytes_of(__m512i first, __m512i second)
{
    const __m512i even = _mm512_set_epi8(
        126, 124, 122, 120, 118, 116, 114, 112, 110, 108, 106, 104, 102, 100, 98, 96, 94, 92, 90,
        88, 86, 84, 82, 80, 78, 76, 74, 72, 70, 68, 66, 64, 62, 60, 58, 56, 54, 52, 50, 48, 46, 44,
        42, 40, 38, 36, 34, 32, 30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);

    return _mm512_permutex2var_epi8(first, even, second);
}

/* Flags of 64 buckets: those of one in a byte of a table, its table by halves of all of them. */
LOOKUPS static inline uint64_t
flags_of(const __m512i *table, int other, const uint32_t *bucket)
{
    const __m512i powers = _mm512_set1_epi64((int64_t)UINT64_C(0x8040201008040201));
    __m512i first = narrowed(bucket), second = narrowed(bucket + 32);
    __m512i low = bytes_of(first, second);
    __m512i at = bytes_of(_mm512_srli_epi16(first, 3), _mm512_srli_epi16(second, 3));
    __m512i high = bytes_of(_mm512_srli_epi16(first, 8), _mm512_srli_epi16(second, 8));
    __m512i found[TABLES], power;
    __mmask64 beyond = _mm512_test_epi8_mask(high, _mm512_set1_epi8(DPQ_WANTED_BUCKETS >> 8));
    __mmask64 wanted;

    for (int i = 0; i < TABLES; i++) {
        found[i] = _mm512_permutex2var_epi8(table[2 * i], at, table[2 * i + 1]);
    }
    for (int tables = TABLES, bit = 4; tables > 1; bit *= 2) {
        __mmask64 odd = _mm512_test_epi8_mask(high, _mm512_set1_epi8((char)bit));

        tables /= 2;
        for (int i = 0; i < tables; i++) {
            found[i] = _mm512_mask_blend_epi8(odd, found[2 * i], found[2 * i + 1]);
        }
    }
    power = _mm512_shuffle_epi8(powers, _mm512_and_si512(low, _mm512_set1_epi8(7)));
    wanted = _mm512_test_epi8_mask(found[0], power);
    return other ? wanted | beyond : wanted & ~beyond;
}

/* The same where no more than one run of each RUN buckets are wanted: by the first of it, and its length. */
LOOKUPS static inline uint64_t
flags_of_runs(const __m512i *table, int other, const uint32_t *bucket)
{
    __m512i first = narrowed(bucket), second = narrowed(bucket + 32);
    __m512i low = bytes_of(first, second);
    __m512i high = bytes_of(_mm512_srli_epi16(first, 6), _mm512_srli_epi16(second, 6));
    __m512i start = _mm512_permutex2var_epi8(table[0], high, table[1]);
    __m512i size = _mm512_permutex2var_epi8(table[2], high, table[3]);
    __m512i after = _mm512_sub_epi8(_mm512_and_si512(low, _mm512_set1_epi8(RUN - 1)), start);
    __mmask64 beyond = _mm512_movepi8_mask(high);
    __mmask64 wanted = _mm512_cmplt_epu8_mask(after, size);

    return other ? wanted | beyond : wanted & ~beyond;
}

/* The same as dpq_wanted_find, for a multiple of 64 buckets. */
LOOKUPS static inline size_t
find_by(int runs, const dpq_wanted *wanted, size_t n, const uint32_t *bucket, uint16_t *place)
{
    const __m512i further = _mm512_set1_epi16(32);
    const uint8_t *from = runs ? wanted->run : wanted->bit;
    __m512i table[2 * TABLES];
    __m512i at = _mm512_set_epi16(31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16,
                                  15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    int other = wanted->flag[DPQ_WANTED_BUCKETS];
    size_t here = 0;

    for (int i = 0; i < (runs ? 4 : 2 * TABLES); i++) {
        table[i] = _mm512_load_si512(from + 64 * i);
    }
    for (size_t i = 0; i < n; i += AT_ONCE) {
        uint64_t flags = runs ? flags_of_runs(table, other, bucket + i)
                              : flags_of(table, other, bucket + i);

        for (int half = 0; half < 2; half++, flags >>= 32) {
            uint32_t some = (uint32_t)flags;

            _mm512_storeu_si512(place + here, _mm512_maskz_compress_epi16(some, at));
            here += (size_t)__builtin_popcount(some);
            at = _mm512_add_epi16(at, further);
        }
    }
    return here;
}

LOOKUPS static size_t
find_by_registers(const dpq_wanted *wanted, size_t n, const uint32_t *bucket, uint16_t *place)
{
    return wanted->runs ? find_by(1, wanted, n, bucket, place) : find_by(0, wanted, n, bucket, place);
}

static int
fits(void)
{
    return __builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512vbmi") &&
           __builtin_cpu_supports("avx512vbmi2");
}
#else
static int
fits(void)
{
    return 0;
}
#endif

/* Runs of wanted ones, if there is no more than one of each RUN buckets. */
static void
find_runs(dpq_wanted *wanted)
{
    wanted->runs = 1;
    for (size_t r = 0; r < DPQ_WANTED_RUNS; r++) {
        const uint8_t *flag = wanted->flag + r * RUN;
        size_t start = 0, end = RUN;

        while (start < end && !flag[start]) {
            start++;
        }
        while (end > start && !flag[end - 1]) {
            end--;
        }
        wanted->run[r] = (uint8_t)start;
        wanted->run[DPQ_WANTED_RUNS + r] = (uint8_t)(end - start);
        for (; start < end; start++) {
            wanted->runs &= flag[start];
        }
    }
}

void
dpq_wanted_of(dpq_wanted *wanted, size_t buckets, const uint8_t *flag)
{
    memset(wanted, 0, sizeof *wanted);
    for (size_t b = 0; b < buckets; b++) {
        wanted->flag[b] = flag[b] != 0;
    }
    wanted->fits = fits();
    for (size_t b = 0; wanted->fits && b < DPQ_WANTED_BUCKETS; b++) {
        wanted->bit[b / 8] |= (uint8_t)(wanted->flag[b] << b % 8);
    }
    if (wanted->fits) {
        find_runs(wanted);
    }
}

size_t
dpq_wanted_find(const dpq_wanted *wanted, size_t n, const uint32_t *bucket, uint16_t *place)
{
    size_t here = 0, start = 0;

#ifdef DPQ_CLONES
    if (wanted->fits) {
        start = n / AT_ONCE * AT_ONCE;
        here = find_by_registers(wanted, start, bucket, place);
    }
#endif
    for (size_t i = start; i < n; i++) { /* each is written, the wanted ones are kept */
        place[here] = (uint16_t)i;
        here += wanted->flag[bucket[i]];
    }
    return here;
}
