/* The way through the parts of parts.h, for what sums them up and what draws one. */
#ifndef DPQ_PARTS_WALK_H
#define DPQ_PARTS_WALK_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "parts.h"

#define DPQ_PARTS_STEPS 64 /* parts at once */

/* A part of a cell with all it takes to halve it. */
typedef struct {
    dpq_dither_part part;
    int64_t offset;      /* its first one */
    int64_t rank, size;  /* records below it, and in it */
    int64_t left, right; /* its fine points are left + 1, ..., right */
} dpq_parts_node;

/* Parts of one depth in a row, each of which may be halved once. */
typedef struct {
    int depth;
    uint32_t index, end; /* from the index-th one of the cell on */
    uint32_t rest;       /* of the next one; see dither.h */
    int64_t rank, left;  /* records and fine points before it */
    int64_t most;        /* it is halved if it has more records than that */
} dpq_parts_run;

/* On the way through all parts. */
typedef struct {
    const dpq_parts *parts;
    size_t next;     /* cut of which nothing has been given yet */
    size_t stretch;  /* of the lowest rank to come, or one before */
    int64_t count;   /* records of the cell at hand, */
    int waiting;     /* of which so many parts are still to be looked at, the lowest one last, */
    dpq_parts_node stack[33];
    dpq_parts_run run; /* after these */
    int sums;        /* whether a node is not gone into where what is inside of it can be summed up: */
    dpq_parts_node whole; /* the one at hand, if it has records, */
    int64_t most;    /* in parts of so many of them */
} dpq_parts_walk;

/* The next parts, so many at the most, up to a whole node; none at the end.
 *
 *   w            IN OUT, at the beginning all 0 but for `parts` and `sums`
 *   to           OUT, length room, which is at least 4
 */
size_t
dpq_parts_next(dpq_parts_walk *w, dpq_part *to, size_t room);

/* Parts that begin at this rank, or a higher one, are not of the leaf that begins at a rank, u as in begin[u]. */
static inline int64_t
dpq_parts_end_after(const dpq_parts *p, size_t u, int64_t rank)
{
    const double ranks = p->ranks[u];
    int64_t end = (int64_t)ceil((floor((double)rank / ranks) + 1.0) * ranks);

    end = end > rank ? end : rank + 1; /* the quotient may have been rounded down */
    return end < p->begin[u + 1] ? end : p->begin[u + 1];
}

/* Nor are parts that leave something out. */
static inline int
dpq_parts_is_beyond(dpq_part part, int64_t end, int64_t right)
{
    return part.least >= end || part.left != right;
}

#endif
