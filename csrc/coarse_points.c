#include "coarse_cells.h"

#include <math.h>

#include "race.h"
#include "uniform.h"

#define SMALL 0x1p-900 /* plain weights of a race are at least this, */
#define LARGE 0x1p900  /* and at most */

/* The sign of the step from cell b at level j to cell c at the next one. */
static int
sign_between(const dpq_coarse_problem *p, size_t j, size_t b, size_t c)
{
    /* v_j <= v_{j+1}: the next rank is as much higher as its target, or more */
    int64_t gap = p->whole[j + 1] - p->whole[j] + (p->part[j + 1] > p->part[j]);

    return b != c && rank_of(p, c) - rank_of(p, b) >= gap ? 1 : -1;
}

void
dpq_coarse_bends(const dpq_coarse_problem *p, size_t size, const size_t *path, int64_t *bend)
{
    const size_t m = p->levels;

    for (size_t i = 0; i < size; i++) {
        const size_t *cell = path + i * m;
        int leaving;
        int entering = rank_of(p, cell[0]) >= p->whole[0] + (p->part[0] > 0.0) ? 1 : -1; /* as from below, */

        for (size_t j = 0; j < m; j++, entering = leaving) {
            if (j + 1 == m) { /* and to the end */
                leaving = rank_of(p, cell[j]) <= p->whole[j] ? 1 : -1;
            }
            else {
                leaving = sign_between(p, j, cell[j], cell[j + 1]);
            }
            *bend++ = (entering - leaving) / 2;
        }
    }
}

/* -ln of what a bend leaves of a piece's weight in a leaf c. */
static double
loss_of(const dpq_coarse_problem *p, const dpq_coarse_pieces *pieces, size_t c, size_t at, int bend)
{
    int64_t rank = bend > 0 ? pieces->least[at] : pieces->most[at];

    return p->rate * (double)bend * (double)(rank - rank_of(p, c));
}

/* A leaf of a cell, by their weights for a bend. */
static size_t
draw_leaf(const dpq_coarse_problem *p, size_t c, int bend, bitgen_t *rng)
{
    const double *volume = p->volume[bend + 1];
    double steepness = p->rate * (double)bend;

    for (int h = height_of(p, c, 0); h > 0; h--) { /* into the left or the right half, if there is one */
        size_t left = p->offset[h - 1] + 2 * (c - p->offset[h]), drawn = 0;
        double log_weight[2];

        if (left + 1 < p->offset[h]) {
            for (size_t i = 0; i < 2; i++) {
                log_weight[i] = log(volume[left + i]) -
                                steepness * (double)(rank_of(p, left + i) - rank_of(p, c));
            }
            (void)dpq_race_draw(2, log_weight, rng, &drawn);
        }
        c = left + drawn;
    }
    return c;
}

/* One of the pieces of a leaf, by their weights for a bend. */
static size_t
draw_piece(const dpq_coarse_problem *p, const dpq_coarse_pieces *pieces, size_t leaf, size_t slot,
           int bend, bitgen_t *rng, double *work)
{
    size_t start = pieces->start[slot], n = pieces->start[slot + 1] - start, drawn = 0;
    int plain = 1;

    if (n == 1) {
        return start;
    }
    for (size_t i = 0; i < n; i++) {
        work[i] = pieces->width[start + i];
        if (bend != 0) {
            work[i] *= exp(-loss_of(p, pieces, leaf, start + i, bend));
        }
        plain &= work[i] >= SMALL && work[i] <= LARGE;
    }
    if (plain) {
        return start + dpq_race_draw_plain(n, work, rng);
    }
    for (size_t i = 0; i < n; i++) {
        work[i] = log(pieces->width[start + i]) - loss_of(p, pieces, leaf, start + i, bend);
    }
    (void)dpq_race_draw(n, work, rng, &drawn);
    return start + drawn;
}

static void
draw_point(const dpq_coarse_pieces *pieces, size_t at, bitgen_t *rng, int64_t *point,
           double *number)
{
    if (pieces->points) {
        *point = pieces->points[at] + 1 +
                 (int64_t)dpq_uniform_below((uint64_t)pieces->width[at], rng);
    }
    else {
        *number = pieces->numbers[at] + pieces->width[at] * dpq_uniform_unit(rng);
    }
}

/* How many outputs from `at` to `end` are in one cell. */
static size_t
run_of(const size_t *path, size_t at, size_t end)
{
    size_t k = 1;

    while (at + k < end && path[at + k] == path[at]) {
        k++;
    }
    return k;
}

void
dpq_coarse_leaves(const dpq_coarse_problem *p, size_t size, size_t m, const size_t *path,
                  const int64_t *bend, bitgen_t *rng, size_t *leaf, uint32_t *copied)
{
    for (size_t at = 0, k; at < size * m; at += k) {
        size_t c = path[at];
        uint64_t places = p->lattice ? (uint64_t)p->volume[1][c] : 0;

        k = run_of(path, at, (at / m + 1) * m);
        if (k == 1) {
            leaf[at] = draw_leaf(p, c, (int)bend[at], rng);
            copied[at] = DPQ_COARSE_NONE;
            continue;
        }
        for (size_t i = 0; i < k; i++) { /* an urn on a lattice */
            uint64_t drawn = places ? dpq_uniform_below(places + i, rng) : 0;

            if (drawn < places || !places) {
                leaf[at + i] = draw_leaf(p, c, 0, rng);
                copied[at + i] = DPQ_COARSE_NONE;
            }
            else {
                leaf[at + i] = leaf[at + (drawn - places)];
                copied[at + i] = (uint32_t)(drawn - places);
            }
        }
    }
}

/* Sort the outputs of a run, and where they are. */
static void
sort_run(size_t k, size_t *piece, int64_t *point, double *number)
{
    for (size_t i = 1; i < k; i++) {
        size_t where = piece[i], s = i;
        int64_t here = point ? point[i] : 0;
        double at = number ? number[i] : 0.0;

        for (; s > 0 && (point ? point[s - 1] > here : number[s - 1] > at); s--) {
            piece[s] = piece[s - 1];
            if (point) {
                point[s] = point[s - 1];
            }
            else {
                number[s] = number[s - 1];
            }
        }
        piece[s] = where;
        if (point) {
            point[s] = here;
        }
        else {
            number[s] = at;
        }
    }
}

void
dpq_coarse_points(const dpq_coarse_problem *p, const dpq_coarse_pieces *pieces, size_t size,
                  size_t m, const size_t *path, const int64_t *bend, const size_t *leaf,
                  const uint32_t *copied, bitgen_t *rng, double *work, size_t *piece, int64_t *point,
                  double *number)
{
    for (size_t begin = 0, k; begin < size * m; begin += k) {
        k = run_of(path, begin, (begin / m + 1) * m);
        for (size_t at = begin; at < begin + k; at++) {
            if (copied[at] != DPQ_COARSE_NONE) {
                size_t same = begin + copied[at];

                piece[at] = piece[same];
                if (point) {
                    point[at] = point[same];
                }
                else {
                    number[at] = number[same];
                }
                continue;
            }
            piece[at] = draw_piece(p, pieces, leaf[at], pieces->slot[at],
                                   k == 1 ? (int)bend[at] : 0, rng, work);
            draw_point(pieces, piece[at], rng, point ? point + at : NULL,
                       number ? number + at : NULL);
        }
        sort_run(k, piece + begin, point ? point + begin : NULL, number ? number + begin : NULL);
    }
}
