#include "lanes.h"

#include "fuzz.h"
#include "problem.h"
#include "wide.h"

#define MOST_LEVELS 6
#define MOST_FEW 40
#define MOST_MANY 600

static dpq_lanes
make_lanes(size_t n, size_t m)
{
    size_t entries = m * (n + 1), row = DPQ_LANES * sizeof(double);

    return (dpq_lanes){
        .levels = m,
        .records = n,
        .fade = fuzz_room(entries, sizeof(double)),
        .above = fuzz_room(entries, sizeof(double)),
        .below = fuzz_room(entries, sizeof(double)),
        .stay = fuzz_room(entries, sizeof(double)),
        .point = fuzz_room(n + 2, row),
        .A = fuzz_room(entries, row),
        .H = fuzz_room(entries, row),
        .gain = fuzz_room(m, row),
        .total = fuzz_room(1, row),
        .suffix = fuzz_room(n + 1, row),
        .rank = fuzz_room(n + 1, sizeof(int64_t)),
        .width = fuzz_room(n + 1, sizeof(double)),
        .plain_A = fuzz_room(entries, sizeof(double)),
        .plain_H = fuzz_room(entries, sizeof(double)),
        .weight = fuzz_room(n + (n + 1) / DPQ_PATH_BLOCK + m + 3, sizeof(double)),
        .exponent = fuzz_room(m, sizeof(int64_t)),
        .lo = fuzz_room(m, sizeof(size_t)),
        .hi = fuzz_room(m, sizeof(size_t)),
        .start = fuzz_room(m, sizeof(size_t)),
    };
}

static void
free_lanes(dpq_lanes *lanes)
{
    free(lanes->fade);
    free(lanes->above);
    free(lanes->below);
    free(lanes->stay);
    free(lanes->point);
    free(lanes->A);
    free(lanes->H);
    free(lanes->gain);
    free(lanes->total);
    free(lanes->suffix);
    free(lanes->rank);
    free(lanes->width);
    free(lanes->plain_A);
    free(lanes->plain_H);
    free(lanes->weight);
    free(lanes->exponent);
    free(lanes->lo);
    free(lanes->hi);
    free(lanes->start);
}

/* The records of one lane: ties, clusters and gaps. */
static void
draw_lane(fuzz_input *in, const dpq_lanes *lanes, size_t lane)
{
    int64_t kind = fuzz_between(in, 0, 7);
    double *number = fuzz_room(lanes->records, sizeof *number);
    double extent = lanes->after - lanes->before;

    for (size_t i = 0; i < lanes->records; i++) {
        double share = fuzz_share(in);

        if (kind < 3) { /* most are near each other */
            share = fuzz_between(in, 0, 15) ? 0.5 + ldexp(share, kind < 2 ? -20 : -45) : share;
        }
        else if (kind < 5) {
            share = rint(share * 4.0) / 4.0;
        }
        number[i] = lanes->before + extent * share;
        if (lanes->lattice) {
            number[i] = fmax(floor(number[i]), 0.0);
        }
        number[i] = fmin(fmax(number[i], lanes->before), lanes->after);
    }
    qsort(number, lanes->records, sizeof *number, fuzz_compare_numbers);
    for (size_t i = 0; i < lanes->records; i++) {
        lanes->point[DPQ_LANES * (i + 1) + lane] = number[i];
    }
    free(number);
}

/* Whether x 2^exponent is y, but for rounding. */
static int
near(double x, int64_t exponent, dpq_wide y)
{
    dpq_wide own = dpq_wide_of(x, exponent);

    if (x == 0.0 || y.mantissa == 0.0) {
        return x == y.mantissa;
    }
    return fabs(ldexp(own.mantissa, (int)(own.exponent - y.exponent)) - y.mantissa) <= 1e-10;
}

/* Rows and total of one lane against those of its intervals by themselves, with an exponent of its
 * own for each entry. */
static void
check_rows(const dpq_lanes *lanes, size_t lane)
{
    size_t n = lanes->records, m = lanes->levels, kept = 0;
    int64_t *rank = fuzz_room(n + 1, sizeof *rank), exponent = 0;
    double *width = fuzz_room(n + 1, sizeof *width), log_total;
    size_t lo[MOST_LEVELS], hi[MOST_LEVELS], start[MOST_LEVELS];
    dpq_decay *decay = fuzz_room(1, sizeof *decay);
    dpq_scan_level *level = fuzz_room(m, sizeof *level);
    double *A = fuzz_room(m * (n + 1), sizeof *A), *H = fuzz_room(m * (n + 1), sizeof *H);
    dpq_large *work = fuzz_room(3 * (n + 1), sizeof *work);
    dpq_scan_blocks blocks;
    dpq_scan_problem p = {.rank = rank,
                          .width = width,
                          .lattice = lanes->lattice,
                          .levels = m,
                          .whole = lanes->whole,
                          .part = lanes->part,
                          .lo = lo,
                          .hi = hi,
                          .start = start,
                          .rate = lanes->rate};

    for (size_t t = 0; t <= n; t++) {
        const double *left = lanes->point + DPQ_LANES * t + lane;

        rank[kept] = (int64_t)t;
        width[kept] = left[DPQ_LANES] - left[0];
        kept += width[kept] > 0.0;
    }
    p.intervals = kept;
    for (size_t j = 0; j < m; j++) {
        lo[j] = 0;
        hi[j] = kept;
        start[j] = j * kept;
    }
    blocks = fuzz_make_blocks(&p, 1);
    CHECK(dpq_scan_forward_blocks(&p, decay, level, 0, &blocks, A, H, work, &log_total) == DPQ_OK);
    for (size_t j = 0; j < m; j++) {
        exponent -= (int64_t)ilogb(lanes->gain[DPQ_LANES * j + lane]);
        for (size_t t = 0, k = 0; t <= n; t++) {
            size_t at = DPQ_LANES * (j * (n + 1) + t) + lane;

            if (k < kept && rank[k] == (int64_t)t) {
                size_t own = start[j] + k;

                CHECK(near(lanes->A[at], exponent, dpq_wide_of(A[own], blocks.A[own])));
                CHECK(near(lanes->H[at], exponent, dpq_wide_of(H[own], blocks.H[own])));
                k++;
            }
            else {
                CHECK(lanes->A[at] == 0.0 && lanes->H[at] == 0.0);
            }
        }
    }
    CHECK(fabs(log(lanes->total[lane]) + (double)exponent * DPQ_LN2 - log_total) <=
          1e-9 * fmax(1.0, fabs(log_total)));
    fuzz_free_blocks(&blocks);
    free(work);
    free(H);
    free(A);
    free(level);
    free(decay);
    free(width);
    free(rank);
}

/* Words of the input, and now and then many zeros: events of probability 2^-1000 happen. */
typedef struct {
    fuzz_input *in;
    int zeros;
} unlikely_words;

static uint64_t
next_unlikely(void *state)
{
    unlikely_words *words = state;

    if (words->zeros > 0) {
        words->zeros--;
        return 0;
    }
    words->zeros = fuzz_between(words->in, 0, 7) ? 0 : (int)fuzz_between(words->in, 0, 15);
    return fuzz_bytes(words->in, 8) | 1;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size, 1};
    size_t m = (size_t)fuzz_between(&in, 1, MOST_LEVELS);
    size_t n = (size_t)fuzz_between(&in, 1, fuzz_between(&in, 0, 7) ? MOST_FEW : MOST_MANY);
    double q[MOST_LEVELS], part[MOST_LEVELS];
    int64_t whole[MOST_LEVELS], span[2] = {0, (int64_t)n};
    size_t path[MOST_LEVELS];
    dpq_decay *decay = fuzz_room(1, sizeof *decay);
    dpq_scan_level *level = fuzz_room(m, sizeof *level);
    dpq_lanes lanes = make_lanes(n, m);
    dpq_scan_problem ends = {
        .intervals = 2, .rank = span, .levels = m, .whole = whole, .part = part};
    unlikely_words words = {&in, 0};
    bitgen_t rng = {&words, next_unlikely, NULL, NULL, next_unlikely};

    for (size_t j = 0; j < m; j++) {
        q[j] = fuzz_share(&in);
    }
    qsort(q, m, sizeof *q, fuzz_compare_numbers);
    dpq_scan_targets(m, q, (int64_t)n, whole, part);
    lanes.lattice = fuzz_bit(&in);
    lanes.rate = fuzz_between(&in, 0, 3) ? ldexp(1.0, (int)fuzz_between(&in, -10, 6))
                                         : fabs(fuzz_finite(&in));
    lanes.before = lanes.lattice ? -1.0 : -fabs(fuzz_finite(&in));
    lanes.after = lanes.lattice ? (double)fuzz_between(&in, 1, INT64_C(1) << 53)
                                : lanes.before + 1.0 + fabs(fuzz_finite(&in));
    if (!(lanes.after > lanes.before && isfinite(lanes.after - lanes.before))) {
        lanes.before = 0.0;
        lanes.after = 1.0;
    }
    lanes.light = ldexp(1.0, -(int)fuzz_between(&in, 0, 20));
    lanes.whole = whole;
    lanes.part = part;
    lanes.decay = decay;
    lanes.level = level;
    ends.rate = lanes.rate;
    dpq_scan_prepare(&ends, decay, level);
    if (dpq_lanes_fit(&lanes)) {
        unsigned failed;

        for (size_t lane = 0; lane < DPQ_LANES; lane++) {
            draw_lane(&in, &lanes, lane);
        }
        dpq_lanes_prepare(&lanes);
        failed = dpq_lanes_forward(&lanes);
        CHECK(failed < 1U << DPQ_LANES);
        for (size_t lane = 0; lane < DPQ_LANES; lane++) {
            if (failed >> lane & 1) {
                continue;
            }
            check_rows(&lanes, lane);
            for (size_t draw = 0; draw < 4; draw++) {
                dpq_lanes_draw(&lanes, lane, &rng, path);
                for (size_t j = 0; j < m; j++) {
                    const double *left = lanes.point + DPQ_LANES * path[j] + lane;

                    CHECK(path[j] <= n && left[DPQ_LANES] > left[0]);
                    CHECK(j == 0 || path[j] >= path[j - 1]);
                }
            }
        }
    }
    free_lanes(&lanes);
    free(level);
    free(decay);
    return 0;
}
