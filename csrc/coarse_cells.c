#include "coarse_cells.h"

#include <math.h>

#include "decay.h"

static inline void
set_rank(const dpq_coarse_ranks *ranks, size_t c, int64_t rank)
{
    if (ranks->narrow) {
        ranks->narrow[c] = (int32_t)rank;
    }
    else {
        ranks->wide[c] = rank;
    }
}

/* Whether a cell is as narrow as it has to be, given the stretch of its level that its first rank is in or one
 * before. */
static int
is_narrow(const dpq_coarse_problem *p, size_t stretch, size_t c)
{
    const int64_t least = least_of(p, c), most = most_of(p, c);
    double span = 0.5 * p->rate * (double)(most - least);

    if (span > DPQ_COARSE_WIDEST || !(p->volume[1][c] < INFINITY)) {
        return 0;
    }
    for (; p->until[stretch] < most; stretch++) {
        if (p->until[stretch] >= least && span > p->span[stretch]) {
            return 0;
        }
    }
    return span <= p->span[stretch];
}

/* Whether a cell of 2^h leaves begins at a leaf and will do for level j. A cell that will has none inside
 * that will not: that is narrower, and in no other stretches. */
static int
will_do(const dpq_coarse_problem *p, size_t j, size_t stretch, size_t leaf, int h)
{
    size_t end = leaf + ((size_t)1 << h);

    return h == 0 || ((leaf & (end - leaf - 1)) == 0 && h < p->heights &&
                      (end <= p->to[j] || p->to[j] == p->leaves) &&
                      leaf + (((size_t)1 << h) / 2) < p->leaves &&
                      is_narrow(p, stretch, p->offset[h] + (leaf >> h)));
}

size_t
dpq_coarse_cells(const dpq_coarse_problem *p, size_t room, size_t *start, size_t *begin,
                 dpq_coarse_segment *segment)
{
    size_t n = 0, segments = 0;
    int h = 0;

    for (size_t j = 0; j < p->levels; j++) {
        size_t leaf = p->from[j], stretch = p->stretch[j], next = SIZE_MAX;

        start[j] = n;
        begin[j] = segments;
        while (leaf < p->to[j]) { /* the highest cell that begins here and will do: about the last one's */
            size_t cell;

            while (p->until[stretch] < least_of(p, leaf)) {
                stretch++;
            }
            if (will_do(p, j, stretch, leaf, h)) {
                while (will_do(p, j, stretch, leaf, h + 1)) {
                    h++;
                }
            }
            else {
                while (!will_do(p, j, stretch, leaf, h)) {
                    h--;
                }
            }
            cell = p->offset[h] + (leaf >> h);
            if (cell != next) {
                if (segments < room) {
                    segment[segments] = (dpq_coarse_segment){(uint32_t)(n - start[j]), (uint32_t)cell};
                }
                segments++;
            }
            next = cell + 1;
            n++;
            leaf += (size_t)1 << h;
        }
    }
    start[p->levels] = n;
    begin[p->levels] = segments;
    return n;
}

/* Which leaves hold more than half of what is around them. */
static void
find_heavy(size_t leaves, int64_t near, const dpq_coarse_ranks *least, const dpq_coarse_ranks *most,
           const double *volume, uint8_t *heavy)
{
    double below_low = 0.0, below_high = 0.0;

    for (size_t i = 0, low = 0, high = 0; i < leaves; i++) {
        for (; dpq_coarse_rank(most, low) < dpq_coarse_rank(least, i) - near; low++) {
            below_low += volume[low];
        }
        for (; high < leaves && dpq_coarse_rank(least, high) <= dpq_coarse_rank(most, i) + near; high++) {
            below_high += volume[high];
        }
        heavy[i] = 2.0 * volume[i] > below_high - below_low;
    }
}

void
dpq_coarse_tree(const dpq_decay *decay, int heights, const size_t *offset, int64_t near, uint8_t *heavy,
                const dpq_coarse_ranks *least, const dpq_coarse_ranks *most, double *const volume[3])
{
    find_heavy(offset[1], near, least, most, volume[1], heavy);
    for (int h = 1; h < heights; h++) {
        for (size_t c = offset[h], half = offset[h - 1]; c < offset[h + 1]; c++) {
            size_t end = half + 2 < offset[h] ? half + 2 : offset[h];
            const int64_t low = dpq_coarse_rank(least, half), high = dpq_coarse_rank(most, end - 1);
            const int64_t rank = middle_of(low, high);
            /* others are never used: their volumes only have to be finite */
            const int will_be_used = decay->rate * (double)(high - low) <= 4.0 * DPQ_COARSE_WIDEST;

            set_rank(least, c, low);
            set_rank(most, c, high);
            volume[0][c] = volume[1][c] = volume[2][c] = 0.0;
            for (; half < end; half++) {
                int64_t middle = middle_of(dpq_coarse_rank(least, half), dpq_coarse_rank(most, half));
                int64_t away = will_be_used ? middle - rank : 0;
                double own = h == 1 && heavy[half] ? INFINITY : volume[1][half];

                volume[0][c] += own < INFINITY ? volume[0][half] * dpq_decay_signed(decay, -away) : own;
                volume[1][c] += own;
                volume[2][c] += own < INFINITY ? volume[2][half] * dpq_decay_signed(decay, away) : own;
            }
        }
    }
}
