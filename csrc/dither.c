#include "dither.h"

#include "ranks.h"
#include "vector.h"

#define LANES 64 /* records that are looked up at once */

static uint32_t
lowest_bits(int k)
{
    return (uint32_t)((UINT64_C(1) << k) - 1);
}

dpq_dither
dpq_dither_of(int bits, uint64_t word)
{
    uint32_t shift = (uint32_t)word & lowest_bits(bits);

    return (dpq_dither){bits, shift, dpq_dither_reverse(shift, bits)};
}

int64_t
dpq_dither_below(const dpq_dither *d, int64_t count, int64_t offset)
{
    dpq_dither_part p = {0, 0};
    int64_t size = count, below = 0;

    if (offset <= 0 || offset >> d->bits) {
        return offset <= 0 ? 0 : count;
    }
    while (size > 1 && p.depth < d->bits) {
        dpq_dither_part lower = dpq_dither_lower(d, p);
        int64_t in_lower = dpq_dither_size(lower, count);

        if (offset >> (d->bits - 1 - p.depth) & 1) {
            p = dpq_dither_upper(d, p);
            below += in_lower;
            size -= in_lower;
        }
        else {
            p = lower;
            size = in_lower;
        }
    }
    /* what is left lies at one offset: at this one if nothing is left to halve */
    return below + (size == 1 && dpq_dither_only(d, p) < offset);
}

/* The offset of one of `count` records: of the one at `place`, 0 <= place < count, in their order. */
static int64_t
offset_at(const dpq_dither *d, int64_t count, int64_t place)
{
    dpq_dither_part p = {0, 0};
    int64_t size = count;

    while (size > 1 && p.depth < d->bits) {
        dpq_dither_part lower = dpq_dither_lower(d, p);
        int64_t in_lower = dpq_dither_size(lower, count);

        if (place < in_lower) {
            p = lower;
            size = in_lower;
        }
        else {
            p = dpq_dither_upper(d, p);
            place -= in_lower;
            size -= in_lower;
        }
    }
    return dpq_dither_only(d, p);
}

/* How many first bits tell `count` records apart, at least 1; all bits where these do not. */
static int
depth_for(const dpq_dither *d, int64_t count)
{
    int depth = 1;

    while (depth < d->bits && INT64_C(1) << depth < count) {
        depth++;
    }
    return depth;
}

/* The records at `place` and after it of `count` at one point, n of them, in order: the parts of a cell
 * that tell them apart are gone through, from the lowest one on. */
static void
fill(const dpq_dither *d, int64_t count, int64_t place, size_t n, int64_t origin, int64_t *point)
{
    const int depth = depth_for(d, count), rest = d->bits - depth;
    const uint32_t low = d->shift & lowest_bits(rest);
    uint32_t index = 0, turned = d->turned & lowest_bits(depth);
    int64_t skipped = 0;
    size_t done = 0;

    if (place > 0) {
        int64_t at = offset_at(d, count, place);

        index = (uint32_t)(at >> rest);
        turned ^= dpq_dither_reverse(index, depth);
        skipped = place - dpq_dither_below(d, count, at); /* records at the same offset */
    }
    origin |= low;
    if (count <= INT64_C(1) << depth) { /* one in a part, or none: no branch but at the end */
        for (; done < n; index++) {
            point[done] = origin | (int64_t)index << rest;
            done += turned < count;
            turned ^= dpq_dither_step(index, depth);
        }
        return;
    }
    for (; done < n; index++) {
        int64_t size = dpq_dither_size((dpq_dither_part){depth, turned}, count) - skipped;

        for (; size > 0 && done < n; size--) {
            point[done++] = origin | index;
        }
        skipped = 0;
        turned ^= dpq_dither_step(index, depth);
    }
}

/* offset_at() of LANES records at once, each of a number of them that int32_t holds, no one at an offset that
 * takes more than `depth` bits to tell. A part that has one record needs no end: the halves of it have that
 * one and none. */
DPQ_VECTORIZED static void
offsets_at(const dpq_dither *d, int depth, const int32_t *count, int32_t *restrict place,
           uint32_t *restrict offset)
{
    int32_t rest[LANES] = {0};

    for (int k = 0; k < depth; k++) {
        const int32_t bit = INT32_C(1) << k, turned = (int32_t)d->turned & bit;

        for (int i = 0; i < LANES; i++) {
            int32_t lower = rest[i] | turned, after = count[i] - 1 - lower;
            int32_t in_lower = after < 0 ? 0 : (after >> (k + 1)) + 1;
            int32_t is_upper = place[i] >= in_lower;

            place[i] -= is_upper ? in_lower : 0;
            rest[i] = is_upper ? lower ^ bit : lower;
        }
    }
    for (int i = 0; i < LANES; i++) {
        offset[i] = dpq_dither_reverse((uint32_t)rest[i], d->bits) ^ d->shift;
    }
}

/* The first run from `run` on that ends after a place, which is mostly near; `runs` if there is none. */
static size_t
run_of(size_t run, size_t runs, const int64_t *above, int64_t place)
{
    size_t step = 1;

    while (run < runs && above[run] <= place) {
        const size_t next = runs - run > step ? run + step : runs;

        if (next == runs || above[next] > place) {
            return dpq_ranks_first(above, run + 1, next, place + 1);
        }
        run = next;
        step *= 2;
    }
    return run;
}

size_t
dpq_dither_at(const dpq_dither *d, size_t n, const int64_t *place, size_t runs, const int64_t *point,
              const int64_t *below, const int64_t *above, int64_t *fine)
{
    const int64_t size = INT64_C(1) << d->bits;
    size_t run = 0;

    for (size_t start = 0; start < n; start += LANES) {
        const size_t some = n - start < LANES ? n - start : LANES;
        int32_t count[LANES] = {0}, inside[LANES] = {0};
        uint32_t offset[LANES];
        size_t run_at[LANES];
        int64_t most = 0;

        for (size_t i = 0; i < some; i++) {
            int64_t at = place[start + i], records;

            run = run_of(run, runs, above, at);
            if (run == runs || at < below[run]) {
                return start + i;
            }
            run_at[i] = run;
            records = above[run] - below[run];
            most = records > most ? records : most;
            count[i] = (int32_t)records;
            inside[i] = (int32_t)(at - below[run]);
        }
        if (most > INT32_MAX) {
            for (size_t i = 0; i < some; i++) {
                const size_t r = run_at[i];

                fine[start + i] = point[r] * size +
                                  offset_at(d, above[r] - below[r], place[start + i] - below[r]);
            }
            continue;
        }
        offsets_at(d, depth_for(d, most), count, inside, offset);
        for (size_t i = 0; i < some; i++) {
            fine[start + i] = point[run_at[i]] * size + offset[i];
        }
    }
    return n;
}

/* Points that have one record each. */
DPQ_VECTORIZED static void
move(const dpq_dither *d, size_t n, int64_t *point)
{
    const int64_t size = INT64_C(1) << d->bits, offset = d->shift;

    for (size_t i = 0; i < n; i++) {
        point[i] = point[i] * size + offset;
    }
}

void
dpq_dither_points(const dpq_dither *d, size_t n, int64_t *point, int64_t before, int64_t after)
{
    size_t done = 0; /* up to there, records are alone at their points, or laid out */

    for (size_t i = 0, end; i < n; i = end) {
        int64_t place = i == 0 ? before : 0, count;

        for (end = i + 1; end < n && point[end] == point[i];) {
            end++;
        }
        count = place + (int64_t)(end - i) + (end == n ? after : 0);
        if (count > 1) {
            move(d, i - done, point + done);
            fill(d, count, place, end - i, point[i] * (INT64_C(1) << d->bits), point + i);
            done = end;
        }
    }
    move(d, n - done, point + done);
}
