/* Outputs of a dithered column in parts of nearly equal rank, of which none has to be kept.
 *
 * Some lattice points are cut out: of each it is known how many records lie below its cell and up to its
 * end. What is between the cells of two cuts is one part. A cell with records is halved as dither.h says it,
 * as often as there are too many records in a part of it. If a part is to have none it is cut at its only
 * record. Parts in a row whose ranks are close are a leaf. Its least rank says which parts it has.
 *
 * Halves of halves of one cell, as often halved, hold one of two numbers of records, and this tells all that
 * they sum up to. So a leaf inside of a cell takes O(log) of its parts, however many these are.
 *
 * Offset u of a cell of c fine points is the fine point first + ceil((u + 1) c / 2^bits) - 1, which is
 * first + u where c = 2^bits. An output's rank is the number of records at fine points below it.
 */
#ifndef DPQ_PARTS_H
#define DPQ_PARTS_H

#include <stddef.h>
#include <stdint.h>

#include <numpy/random/bitgen.h>

#include "decay.h"
#include "dither.h"

typedef struct {
    dpq_dither dither;
    size_t cuts;                  /* C >= 1 */
    const int64_t *first;         /* IN, length C, ascending: the first fine point of each cell, */
    const int64_t *each;          /* and how many it has, >= 1; or NULL: 2^bits. Cells do not overlap */
    const int64_t *below, *above; /* IN, length C: how many records are below the cell, and up to its end; the
                                   * same where only the latter is known. Non-decreasing */
    size_t stretches;             /* T >= 1 */
    const int64_t *start;         /* IN, length T + 1, ascending: ranks start[t], ..., start[t + 1] - 1 are
                                   * stretch t; all ranks are in one */
    const int64_t *most;          /* IN, length T: most records of a part with such a rank, as far as it can be
                                   * cut; -1: only parts that reach other ranks are asked for */
    size_t widths;                /* U >= 1 */
    const int64_t *begin;         /* IN, length U + 1, ascending, from start[0] to start[T]: of leaves that begin
                                   * at ranks begin[u], ..., begin[u + 1] - 1 */
    const double *ranks;          /* IN, length U, >= 1, below 2^62: the parts, which leave nothing out, begin at
                                   * ranks between two multiples of this, and below begin[u + 1] */
} dpq_parts;

typedef struct {
    int64_t left;        /* outputs from left + 1 */
    int64_t width;       /* to left + width, width > 0 */
    int64_t least, most; /* have such ranks */
} dpq_part;

/* Leaves in ascending order, and what they sum up to with a rank in the middle, floor((least + most) / 2).
 *
 *   decay        IN, of a rate
 *   room         how many leaves there is room for
 *   least, most  OUT: its ranks. It begins with the first part of that least rank
 *   sum          OUT: widths of its parts, times exp(rate (most - middle)), 1, and exp(-rate (least -
 *                middle)), a part's ranks taken
 *   parts        OUT: how many parts there are in all
 *   longest      OUT: and in one leaf, at most
 *
 * Returns   how many leaves there are; room + 1 if there are more.
 */
size_t
dpq_parts_leaves(const dpq_parts *p, const dpq_decay *decay, size_t room, int64_t *least, int64_t *most,
                 double *sum[3], size_t *parts, size_t *longest);

/* The parts of a leaf.
 *
 *   rank         its least rank
 *   room         how many parts there is room for: no leaf has more
 *   part         OUT, length room
 *
 * Returns   how many there are. Where records do not ascend, as was promised, all outputs may be wrong; but
 *           there is one part at least, and never more than room.
 */
size_t
dpq_parts_of(const dpq_parts *p, int64_t rank, size_t room, dpq_part *part);

typedef struct {
    int64_t least, most; /* ranks, */
    double width;        /* and of all parts together: as of dpq_parts_leaves */
} dpq_parts_leaf;

/* Draw a part of a leaf by its width, times exp(-rate (r - least)) if bend is 1, r its least rank, and times
 * exp(-rate (most - r)) if bend is -1, r its greatest.
 *
 *   room         as for dpq_parts_of
 *   part         WORK, length room
 *   weight       WORK, length room
 *
 * Returns   the part
 * Cost      two ways to a part, O(log n) each, for each try: an output of any part is as likely as another, and
 *           is taken by that factor. After some of them, that of all parts.
 */
dpq_part
dpq_parts_draw(const dpq_parts *p, double rate, const dpq_parts_leaf *leaf, int bend, bitgen_t *rng,
               size_t room, dpq_part *part, double *weight);

#endif
