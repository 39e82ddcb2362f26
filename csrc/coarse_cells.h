/* Cells of the tree of coarse.h, for the files that it consists of: where they begin, and their ranks. */
#ifndef DPQ_COARSE_CELLS_H
#define DPQ_COARSE_CELLS_H

#include "coarse.h"

/* The height of a cell, looked for from a guess on. */
static inline int
height_of(const dpq_coarse_problem *p, size_t c, int h)
{
    while (c >= p->offset[h + 1]) {
        h++;
    }
    while (c < p->offset[h]) {
        h--;
    }
    return h;
}

/* The first leaf of a cell of height h. */
static inline size_t
leaf_of(const dpq_coarse_problem *p, size_t c, int h)
{
    return (c - p->offset[h]) << h;
}

static inline int64_t
least_of(const dpq_coarse_problem *p, size_t c)
{
    return dpq_coarse_rank(&p->least, c);
}

static inline int64_t
most_of(const dpq_coarse_problem *p, size_t c)
{
    return dpq_coarse_rank(&p->most, c);
}

static inline int64_t
middle_of(int64_t least, int64_t most)
{
    return least + (most - least) / 2;
}

static inline int64_t
rank_of(const dpq_coarse_problem *p, size_t c)
{
    return middle_of(least_of(p, c), most_of(p, c));
}

#endif
