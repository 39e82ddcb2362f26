#include "halves.h"

#include "fuzz.h"

#define MOST_CELLS 3
#define MOST_RECORDS 200
#define MOST_STRETCHES 6
#define MOST_PLACE 1000

/* Cells, of which first little is asked, and then all: what was said must be of the records found. */
typedef struct {
    size_t cells;
    int64_t count[MOST_CELLS], start[MOST_CELLS], stop[MOST_CELLS], point[MOST_CELLS];
    int64_t cell[MOST_CELLS];
    int32_t known[MOST_CELLS];
    dpq_halves halves;
} problem;

/* More room by exactly what was missing, at a new address. */
static void
grow(problem *p)
{
    dpq_halves *h = &p->halves;
    dpq_half *node;
    uint32_t *drawn;

    h->node_room += h->nodes == h->node_room;
    if (h->offset_room - h->offsets < (size_t)h->few) {
        h->offset_room = h->offsets + (size_t)h->few;
    }
    node = fuzz_room(h->node_room, sizeof *node);
    drawn = fuzz_room(h->offset_room, sizeof *drawn);
    memcpy(node, h->node, h->nodes * sizeof *node);
    memcpy(drawn, h->drawn, h->offsets * sizeof *drawn);
    free(h->node);
    free(h->drawn);
    h->node = node;
    h->drawn = drawn;
}

static int64_t *
order(problem *p, size_t i, int64_t start, int64_t stop)
{
    int64_t *offset = fuzz_room((size_t)(stop - start), sizeof *offset);

    while (!dpq_halves_draw(&p->halves, &p->known[i], p->count[i], start, stop)) {
        grow(p);
    }
    dpq_halves_read(&p->halves, p->known[i], p->count[i], start, stop, offset);
    for (int64_t k = 0; k < stop - start; k++) {
        CHECK(offset[k] >= (k > 0 ? offset[k - 1] : 0) && offset[k] >> p->halves.bits == 0);
    }
    return offset;
}

static int64_t
below(problem *p, size_t i, int64_t offset)
{
    int64_t found;

    while (!dpq_halves_below(&p->halves, &p->known[i], p->count[i], offset, &found)) {
        grow(p);
    }
    return found;
}

/* How many of all records, laid out, are below an output. */
static int64_t
rank_of(const problem *p, int64_t *const *offset, int64_t output)
{
    int64_t rank = 0;

    for (size_t i = 0; i < p->cells; i++) {
        for (int64_t k = 0; k < p->count[i]; k++) {
            rank += p->point[i] * (INT64_C(1) << p->halves.bits) + offset[i][k] < output;
        }
    }
    return rank;
}

typedef struct {
    size_t found;
    int64_t *at, *below, *above;
} cuts;

static cuts
cut(problem *p, fuzz_input *in)
{
    int64_t full[MOST_STRETCHES], first[MOST_STRETCHES], last[MOST_STRETCHES], end = -9;
    size_t offset[MOST_STRETCHES + 1] = {0}, work[MOST_STRETCHES];
    dpq_halves_around around = {0, full, offset, first, last, work};
    size_t stretches = (size_t)fuzz_between(in, 1, MOST_STRETCHES);
    cuts made;

    for (size_t s = 0; s < stretches; s++) {
        if (around.sizes == 0 || fuzz_bit(in)) {
            full[around.sizes] =
                fuzz_between(in, 1, 9) + (around.sizes > 0 ? full[around.sizes - 1] : 0);
            around.sizes++;
            end = -9;
        }
        first[s] = fuzz_between(in, end, end + 99);
        last[s] = end = fuzz_between(in, first[s], first[s] + 99);
        offset[around.sizes] = s + 1;
    }
    dpq_halves_begin(&around);
    for (size_t i = 0; i < p->cells; i++) {
        p->cell[i] = fuzz_bit(in) ? (int64_t)i : -1;
        while (p->cell[i] >= 0 &&
               !dpq_halves_split(&p->halves, &around, p->start[i], &p->known[i], p->count[i])) {
            grow(p);
            dpq_halves_begin(&around);
        }
    }
    made.found = dpq_halves_cuts(&p->halves, &around, p->cells, p->point, p->start, p->stop,
                                 p->cell, p->known, NULL, NULL, NULL);
    made.at = fuzz_room(made.found, sizeof *made.at);
    made.below = fuzz_room(made.found, sizeof *made.below);
    made.above = fuzz_room(made.found, sizeof *made.above);
    CHECK(dpq_halves_cuts(&p->halves, &around, p->cells, p->point, p->start, p->stop, p->cell,
                          p->known, made.at, made.below, made.above) == made.found);
    /* parts that are too full are cut, unless all of their records are at one offset */
    for (size_t i = 0; i + 1 < made.found; i++) {
        int64_t from = made.above[i], to = made.below[i + 1];

        CHECK(made.at[i] < made.at[i + 1]);
        for (size_t c = 0; c < p->cells; c++) {
            if (p->cell[c] < 0 || p->start[c] > from || p->stop[c] < to || p->stop[c] == from) {
                continue;
            }
            for (size_t s = 0; s < stretches; s++) {
                size_t size = 0;

                while (offset[size + 1] <= s) {
                    size++;
                }
                CHECK(first[s] > from || last[s] < to || to - from < 2 * full[size]);
            }
        }
    }
    return made;
}

static void
check_cuts(const problem *p, const cuts *made, int64_t *const *offset)
{
    for (size_t i = 0; i < made->found; i++) {
        CHECK(rank_of(p, offset, made->at[i]) <= made->below[i]);
        CHECK(rank_of(p, offset, made->at[i] + 1) >= made->above[i]);
        CHECK(made->below[i] <= made->above[i]);
    }
    free(made->at);
    free(made->below);
    free(made->above);
}

static void
check_binomial(problem *p, fuzz_input *in)
{
    int64_t count = (int64_t)(fuzz_bytes(in, 8) >> fuzz_between(in, 10, 63));
    int64_t drawn = dpq_halves_binomial(&p->halves, count);
    int64_t half = count / 2 + 1, distance = fuzz_between(in, 0, half - 1);
    double log_ratio = dpq_halves_log_binomial(half, distance);

    CHECK(drawn >= 0 && drawn <= count);
    CHECK(log_ratio <= 1e-9 || half < 50);
    /* of the last outcomes Stirling's series says little, and they are never drawn */
    CHECK(half < 1 << 17 || half > INT64_C(1) << 40 || half - distance < 1 << 10 ||
          fabs(log_ratio - 2.0 * lgamma((double)half + 1.0) +
               lgamma((double)(half + distance) + 1.0) +
               lgamma((double)(half - distance) + 1.0)) <= 1e-13 * lgamma((double)half + 1.0));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size, 1};
    bitgen_t rng;
    problem p = {.cells = (size_t)fuzz_between(&in, 1, MOST_CELLS)};
    int64_t *offset[MOST_CELLS], asked[MOST_CELLS], under[MOST_CELLS], place = 0;
    cuts before, after;

    p.halves.bits = (int)fuzz_between(&in, 1, 32);
    p.halves.few = fuzz_between(&in, 1, 20);
    p.halves.counted = fuzz_between(&in, 100, 300);
    p.halves.nodes = p.halves.node_room = 1;
    p.halves.node = fuzz_room(1, sizeof *p.halves.node);
    p.halves.offset_room = 1;
    p.halves.drawn = fuzz_room(1, sizeof *p.halves.drawn);
    for (size_t i = 0; i < p.cells; i++) {
        p.count[i] = fuzz_between(&in, 0, MOST_RECORDS);
        p.start[i] = place;
        p.stop[i] = place += p.count[i];
        p.point[i] = (i > 0 ? p.point[i - 1] + 1 : 0) + fuzz_between(&in, 0, 1);
        p.known[i] = 0;
    }
    rng = fuzz_generator(&in);
    p.halves.rng = &rng;
    check_binomial(&p, &in);
    before = cut(&p, &in);
    for (size_t i = 0; i < p.cells; i++) {
        int64_t from = fuzz_between(&in, 0, p.count[i]), to = fuzz_between(&in, from, p.count[i]);

        asked[i] = fuzz_between(&in, -1, (INT64_C(1) << p.halves.bits) + 1);
        under[i] = below(&p, i, asked[i]);
        free(order(&p, i, from, to));
    }
    after = cut(&p, &in);
    for (size_t i = 0; i < p.cells; i++) {
        int64_t found = 0;

        offset[i] = order(&p, i, 0, p.count[i]);
        for (int64_t k = 0; k < p.count[i]; k++) {
            found += offset[i][k] < asked[i];
        }
        CHECK(found == under[i] && below(&p, i, asked[i]) == under[i]);
    }
    check_cuts(&p, &before, offset);
    check_cuts(&p, &after, offset);
    for (size_t i = 0; i < p.cells; i++) {
        free(offset[i]);
    }
    free(p.halves.node);
    free(p.halves.drawn);
    return 0;
}
