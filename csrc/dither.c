#include "dither.h"

#include <string.h>

#include "uniform.h"
#include "vector.h"

#define BY_RANKS 128 /* offsets are put in order by counting how many are below each, up to so many, */
#define PART 32      /* and beyond in parts of about so many */
#define MOST_PARTS 256

/* Multiplied by this, numbers next to each other are far apart: 2^64 over the golden ratio. */
#define SCATTER UINT64_C(0x9E3779B97F4A7C15)

/* The slot of a stretch, or the free one where it belongs. */
static dpq_dither_slot *
slot_of(const dpq_dither *d, int64_t stretch)
{
    size_t at = (size_t)(((uint64_t)stretch * SCATTER) >> 32) & (d->slots - 1);

    while (d->slot[at].offset && d->slot[at].stretch != stretch) {
        at = (at + 1) & (d->slots - 1);
    }
    return &d->slot[at];
}

void
dpq_dither_move(const dpq_dither *from, dpq_dither *to)
{
    for (size_t i = 0; i < from->slots; i++) {
        if (from->slot[i].offset) {
            *slot_of(to, from->slot[i].stretch) = from->slot[i];
        }
    }
}

int64_t
dpq_dither_draw(dpq_dither *d, int64_t start, int64_t stop, bitgen_t *rng)
{
    const size_t size = (size_t)1 << d->stretch_bits;
    const uint32_t mask = (uint32_t)((UINT64_C(1) << d->bits) - 1);

    for (int64_t s = start >> d->stretch_bits; s <= (stop - 1) >> d->stretch_bits; s++) {
        dpq_dither_slot *slot = slot_of(d, s);
        uint64_t word = 0;

        if (slot->offset) {
            continue;
        }
        if (d->left == 0) {
            return s * (INT64_C(1) << d->stretch_bits);
        }
        for (size_t i = 0; i < size; i++) {
            d->room[i] = dpq_uniform_half(i, rng, &word) & mask;
        }
        *slot = (dpq_dither_slot){s, d->room};
        d->room += size;
        d->left--;
    }
    return stop;
}

bool
dpq_dither_drawn(const dpq_dither *d, int64_t start, int64_t stop)
{
    for (int64_t s = start >> d->stretch_bits; s <= (stop - 1) >> d->stretch_bits; s++) {
        if (!slot_of(d, s)->offset) {
            return false;
        }
    }
    return true;
}

/* Offsets of the places from `at` on that are in its stretch; how many before `stop`. */
static const uint32_t *
run_of(const dpq_dither *d, int64_t at, int64_t stop, size_t *length)
{
    int64_t stretch = at >> d->stretch_bits, size = INT64_C(1) << d->stretch_bits;
    int64_t inside = at & (size - 1);

    *length = (size_t)(stop - at < size - inside ? stop - at : size - inside);
    return slot_of(d, stretch)->offset + inside;
}

void
dpq_dither_read(const dpq_dither *d, int64_t start, int64_t stop, int64_t *offset)
{
    size_t length;

    for (int64_t at = start; at < stop; at += (int64_t)length) {
        const uint32_t *run = run_of(d, at, stop, &length);

        for (size_t i = 0; i < length; i++) {
            *offset++ = run[i];
        }
    }
}

int64_t
dpq_dither_below(const dpq_dither *d, int64_t start, int64_t stop, int64_t offset)
{
    int64_t below = 0;
    size_t length;

    for (int64_t at = start; at < stop; at += (int64_t)length) {
        const uint32_t *run = run_of(d, at, stop, &length);

        for (size_t i = 0; i < length; i++) {
            below += run[i] < offset;
        }
    }
    return below;
}

/* A block of a window. */
typedef struct {
    int64_t point, first, last; /* its records are at places first, ..., last - 1, */
    int64_t from, to;           /* from, ..., to - 1 of them in the window */
} block;

/* The block that goes on, or begins, at a place of the window. */
static block
block_at(const dpq_dither_window *w, int64_t place)
{
    const int64_t *point = w->point + (place - w->start), *end = w->point + (w->stop - w->start);
    block b = {.point = *point, .from = place};

    while (++point < end && *point == b.point) {
    }
    b.to = w->start + (point - w->point);
    b.first = place == w->start ? w->low : place;
    b.last = b.to == w->stop ? w->high : b.to;
    return b;
}

DPQ_VECTORIZED bool
dpq_dither_fits(const dpq_dither_window *window, int64_t most)
{
    const int64_t *point = window->point, records = window->stop - window->start;
    int64_t last = window->stop - 1;
    int more = 0;
    block b = block_at(window, window->start);

    /* those at both ends go on beyond the window */
    while (last > window->start && point[last - 1 - window->start] == point[records - 1]) {
        last--;
    }
    if (b.last - b.first > most || (b.to < window->stop && window->high - last > most)) {
        return false;
    }
    for (int64_t i = most; i < records; i++) {
        more |= point[i] == point[i - most];
    }
    return !more;
}

/* What a comparison adds to a number: it is -1 in vectors. */
#ifdef DPQ_VECTORS
#define COUNTED(truth) (-(truth))
#else
#define COUNTED(truth) (truth)
#endif

#define BODY "dither_body.h"
#include "versions.h"
#undef BODY

static void
ranks(size_t k, const int32_t *x, int32_t *rank)
{
#ifdef DPQ_CLONES
    if (__builtin_cpu_supports("x86-64-v4")) {
        ranks_v4(k, x, rank);
        return;
    }
    if (__builtin_cpu_supports("x86-64-v3")) {
        ranks_v3(k, x, rank);
        return;
    }
#endif
    ranks_plain(k, x, rank);
}

/* k numbers in order. */
static void
sort_few(size_t k, const int32_t *x, int32_t *rank, int32_t *sorted)
{
    size_t all = 0;

    ranks(k, x, rank);
    for (size_t i = 0; i < k; i++) {
        all += (size_t)rank[i];
        sorted[rank[i]] = x[i];
    }
    if (2 * all == k * (k - 1)) {
        return;
    }
    /* some are equal, of the same rank */
    for (size_t i = 0; i < k; i++) {
        size_t at = i;

        for (; at > 0 && sorted[at - 1] > x[i]; at--) {
            sorted[at] = sorted[at - 1];
        }
        sorted[at] = x[i];
    }
}

/* Offsets as numbers that vectors compare: less 2^31; and back. */
static inline int32_t
signed_of(uint32_t offset)
{
    return (int32_t)(offset ^ UINT32_C(0x80000000));
}

static inline uint32_t
offset_of(int32_t x)
{
    return (uint32_t)x ^ UINT32_C(0x80000000);
}

/* The offsets of k records, as signed numbers, in order. */
static void
sort_offsets(int bits, size_t k, int32_t *x, int32_t *rank, int32_t *sorted)
{
    size_t end[MOST_PARTS], parts = 2, begin = 0;
    int shift = bits - 1;

    if (k <= BY_RANKS) {
        sort_few(k, x, rank, sorted);
        return;
    }
    for (; shift > 0 && parts < MOST_PARTS && parts * PART < k; shift--) {
        parts *= 2;
    }
    /* by their highest bits first */
    memset(end, 0, parts * sizeof *end);
    for (size_t i = 0; i < k; i++) {
        end[offset_of(x[i]) >> shift]++;
    }
    for (size_t part = 0, sum = 0; part < parts; part++) {
        size_t size = end[part];

        end[part] = sum;
        sum += size;
    }
    for (size_t i = 0; i < k; i++) {
        sorted[end[offset_of(x[i]) >> shift]++] = x[i];
    }
    memcpy(x, sorted, k * sizeof *x);
    for (size_t part = 0; part < parts; part++) {
        if (end[part] > begin) {
            sort_few(end[part] - begin, x + begin, rank, sorted + begin);
        }
        begin = end[part];
    }
}

void
dpq_dither_points(const dpq_dither *d, const dpq_dither_window *window, uint32_t *work,
                  int64_t *fine)
{
    const int64_t points = INT64_C(1) << d->bits;
    int64_t place = window->start, known = place, end = place; /* a run of offsets is at hand */
    const uint32_t *alone = NULL;
    size_t length;

    while (place < window->stop) {
        block b = block_at(window, place);
        size_t k = (size_t)(b.last - b.first), room = k + DPQ_DITHER_PADDING;
        int32_t *x = (int32_t *)work, *rank = x + room, *sorted = rank + room;

        place = b.to;
        if (k == 1) {
            if (b.first >= end) {
                alone = run_of(d, b.first, window->stop, &length);
                known = b.first;
                end = known + (int64_t)length;
            }
            *fine++ = b.point * points + alone[b.first - known];
            continue;
        }
        for (int64_t at = b.first; at < b.last; at += (int64_t)length) {
            const uint32_t *run = run_of(d, at, b.last, &length);

            for (size_t i = 0; i < length; i++) {
                x[at - b.first + (int64_t)i] = signed_of(run[i]);
            }
        }
        sort_offsets(d->bits, k, x, rank, sorted);
        for (int64_t at = b.from; at < b.to; at++) {
            *fine++ = b.point * points + offset_of(sorted[at - b.first]);
        }
    }
}
