#include "parts.h"

#include "fuzz.h"

#define MOST_CUTS 6
#define MOST_RECORDS 40
#define MOST_PARTS 2000

typedef struct {
    int64_t first[MOST_CUTS], each[MOST_CUTS], below[MOST_CUTS], above[MOST_CUTS];
    int64_t start[5], most[4], begin[5];
    double ranks[4];
} arrays;

static int64_t
offset_of(const dpq_parts *p, int64_t i)
{
    int64_t offset = 0;

    for (int k = 0; k < p->dither.bits; k++) {
        offset = 2 * offset + (i >> k & 1);
    }
    return offset ^ (int64_t)p->dither.shift;
}

/* The fine point of record i of a cell. */
static int64_t
record_of(const dpq_parts *p, size_t cut, int64_t i)
{
    int64_t offset = offset_of(p, i);
    int64_t offsets = INT64_C(1) << p->dither.bits;
    long double each = (long double)(p->each ? p->each[cut] : offsets);

    return p->first[cut] - 1 + (int64_t)ceill((long double)(offset + 1) * each / (long double)offsets);
}

/* Records at fine points below one in the cell of a cut. */
static int64_t
rank_in(const dpq_parts *p, size_t cut, int64_t point)
{
    int64_t rank = p->below[cut];

    for (int64_t i = 0; i < p->above[cut] - p->below[cut]; i++) {
        rank += record_of(p, cut, i) < point;
    }
    return rank;
}

static int64_t
last_of(const dpq_parts *p, size_t cut)
{
    return p->first[cut] - 1 + (p->each ? p->each[cut] : INT64_C(1) << p->dither.bits);
}

/* The lowest limit of ranks, or -1. */
static int64_t
limit_of(const dpq_parts *p, int64_t low, int64_t high)
{
    int64_t limit = -1;

    for (size_t t = 0; t < p->stretches; t++) {
        if (p->start[t] <= high && p->start[t + 1] > low && p->most[t] >= 0 &&
            (limit < 0 || p->most[t] < limit)) {
            limit = p->most[t];
        }
    }
    return limit;
}

static void
draw_problem(fuzz_input *in, arrays *x, dpq_parts *p)
{
    int bits = (int)fuzz_between(in, 1, fuzz_bit(in) ? 4 : 24), masses = fuzz_bit(in);
    int64_t at = fuzz_between(in, -1, 3), rank = 0;

    *p = (dpq_parts){.dither = dpq_dither_of(bits, (uint64_t)fuzz_between(in, 0, INT64_MAX)),
                     .cuts = (size_t)fuzz_between(in, 1, MOST_CUTS),
                     .first = x->first, .each = masses ? x->each : NULL,
                     .below = x->below, .above = x->above,
                     .stretches = (size_t)fuzz_between(in, 1, 4),
                     .start = x->start, .most = x->most,
                     .begin = x->begin, .ranks = x->ranks};
    for (size_t i = 0; i < p->cuts; i++) {
        x->each[i] = fuzz_bit(in) ? fuzz_between(in, 1, 9) : fuzz_between(in, 1, INT64_C(1) << 40);
        x->first[i] = at += fuzz_bit(in) ? 0 : fuzz_between(in, 0, 1 << 20);
        at = last_of(p, i) + 1;
        x->below[i] = rank += fuzz_bit(in) ? 0 : fuzz_between(in, 0, 5);
        x->above[i] = rank += fuzz_bit(in) ? 0 : fuzz_between(in, 0, MOST_RECORDS);
    }
    for (size_t t = 0; t < p->stretches; t++) {
        x->start[t + 1] = x->start[t] + fuzz_between(in, 1, 30);
        x->most[t] = fuzz_between(in, -1, fuzz_bit(in) ? 2 : 9);
    }
    x->start[p->stretches] = rank + 1 > x->start[p->stretches] ? rank + 1 : x->start[p->stretches];
    p->widths = 0;
    do {
        int64_t left = x->start[p->stretches] - x->begin[p->widths];

        x->ranks[p->widths] = fuzz_bit(in) ? 1.0 + 20.0 * fuzz_share(in)
                                           : (double)fuzz_between(in, 10, 99) / 10.0;
        x->begin[p->widths + 1] = x->begin[p->widths] + (p->widths < 3 ? fuzz_between(in, 1, left) : left);
    } while (x->begin[++p->widths] < x->start[p->stretches]);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size, 1};
    static arrays x;
    dpq_parts p;
    dpq_decay decay;
    size_t room = MOST_PARTS, parts, longest, leaves, seen = 0, at = 0;
    int64_t *least = fuzz_room(room, sizeof *least), *most = fuzz_room(room, sizeof *most);
    int64_t right = INT64_MIN, beyond = 0; /* where the leaf before ends */
    double *sum[3] = {fuzz_room(room, sizeof(double)), fuzz_room(room, sizeof(double)),
                      fuzz_room(room, sizeof(double))};
    double rate = fuzz_share(&in);
    dpq_part *part, *all, *work;
    double *weight;
    bitgen_t rng;

    memset(&x, 0, sizeof x);
    draw_problem(&in, &x, &p);
    dpq_decay_fill(&decay, rate, x.start[p.stretches]);
    leaves = dpq_parts_leaves(&p, &decay, room, least, most, sum, &parts, &longest);
    CHECK(leaves <= room && longest <= parts);
    if (leaves > 0) {
        CHECK(dpq_parts_leaves(&p, &decay, leaves - 1, least, most, sum, &seen, &at) ==
              leaves);
        CHECK(dpq_parts_leaves(&p, &decay, leaves, least, most, sum, &seen, &at) == leaves);
        CHECK(seen == parts && at == longest);
    }
    part = fuzz_room(longest, sizeof *part);
    work = fuzz_room(longest, sizeof *work);
    weight = fuzz_room(longest, sizeof *weight);
    all = fuzz_room(parts, sizeof *all);
    seen = 0;
    for (size_t k = 0; k < leaves; k++) {
        size_t n = dpq_parts_of(&p, least[k], longest, part);
        long double sums[3] = {0};
        int64_t middle = least[k] + (most[k] - least[k]) / 2;
        size_t t = 0;
        int64_t end;

        while (p.begin[t + 1] <= least[k]) {
            t++;
        }
        end = (int64_t)ceil((floor((double)least[k] / p.ranks[t]) + 1.0) * p.ranks[t]);
        end = end > least[k] ? end : least[k] + 1;
        end = end < p.begin[t + 1] ? end : p.begin[t + 1];
        CHECK(n > 0 && part[0].least == least[k] && part[n - 1].most == most[k]);
        CHECK(k == 0 || least[k] >= beyond || part[0].left > right);
        beyond = end;
        right = part[n - 1].left + part[n - 1].width;
        for (size_t i = 0; i < n; i++) {
            CHECK(part[i].least < end);
            CHECK(i == 0 || part[i].left == part[i - 1].left + part[i - 1].width);
            for (int bend = -1; bend < 2; bend++) {
                int64_t rank = bend > 0 ? part[i].least : part[i].most;

                sums[bend + 1] += part[i].width * expl(-(long double)rate * bend * (rank - middle));
            }
            CHECK(seen < parts);
            all[seen++] = part[i];
        }
        rng = fuzz_generator(&in);
        for (int bend = -1; bend < 2; bend++) {
            const dpq_parts_leaf leaf = {least[k], most[k], sum[1][k]};
            dpq_part drawn = dpq_parts_draw(&p, rate, &leaf, bend, &rng, longest, work, weight);

            for (at = 0; at < n && memcmp(&part[at], &drawn, sizeof drawn) != 0; at++) {
            }
            CHECK(at < n);
        }
        for (int bend = 0; bend < 3; bend++) {
            CHECK(fabsl(sum[bend][k] - sums[bend]) <= 1e-11L * sums[bend]);
        }
    }
    CHECK(seen == parts);
    /* ascending, with all that is asked for, in parts that are short enough and have the ranks they say */
    for (size_t i = 0; i < parts; i++) {
        CHECK(all[i].width > 0 && all[i].least <= all[i].most);
        CHECK(i == 0 || all[i].left >= all[i - 1].left + all[i - 1].width);
        CHECK(i == 0 || all[i].least >= all[i - 1].least);
        CHECK(limit_of(&p, all[i].least, all[i].most) >= 0);
    }
    for (size_t cut = 0; cut < p.cuts; cut++) {
        int64_t end = last_of(&p, cut), from = p.first[cut];
        int64_t before = cut > 0 ? last_of(&p, cut - 1) : from - 1;

        if (cut > 0) { /* between two cells */
            int64_t last = p.above[cut] > p.below[cut] ? from - 1 : end;
            int64_t high = p.above[cut] > p.below[cut] ? p.below[cut] : p.above[cut];

            if (before < last && limit_of(&p, p.above[cut - 1], high) >= 0) {
                for (at = 0; at < parts && all[at].left != before; at++) {
                }
                CHECK(at < parts && all[at].width == last - before &&
                      all[at].least == p.above[cut - 1] && all[at].most == high);
            }
        }
        for (int k = 0; k < 20 && p.above[cut] > p.below[cut]; k++) { /* some outputs of the cell */
            int64_t point = k == 0 ? from : k == 1 ? end : fuzz_between(&in, from, end), rank;

            if (k > 1 && fuzz_bit(&in)) { /* at a record, or right after it */
                point = record_of(&p, cut, fuzz_between(&in, 0, p.above[cut] - p.below[cut] - 1)) +
                        fuzz_bit(&in);
                point = point > end ? end : point;
            }
            rank = rank_in(&p, cut, point);
            for (at = 0; at < parts && all[at].left + all[at].width < point; at++) {
            }
            if (at == parts || all[at].left >= point) {
                CHECK(limit_of(&p, rank, rank) < 0);
                continue;
            }
            CHECK(all[at].least <= rank && rank <= all[at].most);
            CHECK(limit_of(&p, rank, rank) < 0 ||
                  all[at].most - all[at].least <= limit_of(&p, rank, rank));
        }
    }
    free(all);
    free(weight);
    free(work);
    free(part);
    for (int bend = 0; bend < 3; bend++) {
        free(sum[bend]);
    }
    free(most);
    free(least);
    return 0;
}
