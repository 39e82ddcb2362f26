/* Non-negative masses of the leaves of a tree, nearest to counts of all its nodes. */
#ifndef DPQ_FIT_H
#define DPQ_FIT_H

#include <stddef.h>
#include <stdint.h>

/* One bend of a curve: at this price the mass of a leaf becomes positive. */
typedef struct {
    double price;
    double slope; /* by how much the curve gets steeper there */
    size_t leaf;
} dpq_fit_bend;

/* A tree: inner nodes are listed level after level from the lowest one up; the last one is the root.
 * The nodes of a level divide the leaves among them, from left to right. */
typedef struct {
    size_t leaves;
    size_t levels;       /* number of levels of inner nodes, at least 1: the last one is the root */
    const size_t *first; /* length levels + 1: level l has the nodes first[l], ..., first[l+1] - 1 */
    const size_t *stop;  /* length first[levels]: one past the last leaf of the node. In a level they
                          * ascend strictly, up to `leaves`, and are among those of the level below */
} dpq_fit_tree;

/* The masses x >= 0 of all leaves, of sum `total`, that minimize sum (x_v - count_v)^2 over all leaves and inner
 * nodes v that are counted, x_v the mass of the leaves of v. A count of the root changes nothing.
 *
 *   tree         leaves >= 1 (not checked, nor the form of the tree)
 *   leaf_count   IN, length tree->leaves, finite (not checked)
 *   node_count   IN, length first[levels], finite, or NaN for a node that is not counted
 *   total        what all masses add up to, positive and finite (not checked)
 *   mass         OUT, length tree->leaves
 *   bend         WORK, length leaves
 *   spare        WORK, length leaves / 2
 *   offset, gain WORK, length first[levels] each
 *
 * The multipliers of the sums make prices: a leaf at the price p has the mass max(0, count + p), and
 * a node that is offered p offers p' = p + count - mass to its children. So the mass of a node is a
 * convex function of its price that rises and is linear between bends, one bend for each leaf. From
 * below, bends are merged and moved to the price of the parent, which keeps their order: at the root,
 * those below the price of the total are the leaves that have mass. Given these, the masses are
 * linear in the counts: a pass from below and one from above find them.
 *
 * Cost      O(N levels + N log N) for N leaves, no allocation, O(log N) stack, reentrant. NaN and
 *           infinite counts give masses that mean nothing, safely.
 * Accuracy  some 1e-16 of the largest sum of counts, for each level.
 */
void
dpq_fit_masses(const dpq_fit_tree *tree, const double *leaf_count, const double *node_count,
               double total, double *mass, dpq_fit_bend *bend, dpq_fit_bend *spare, double *offset,
               double *gain);

#endif
