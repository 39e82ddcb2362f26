#include "fit.h"

#include <math.h>
#include <string.h>

/* Up to this number of bends are sorted one by one. */
#define FEW 12

static void
insert_each(dpq_fit_bend *bend, size_t size)
{
    for (size_t i = 1; i < size; i++) {
        dpq_fit_bend moved = bend[i];
        size_t at = i;

        for (; at > 0 && bend[at - 1].price > moved.price; at--) {
            bend[at] = bend[at - 1];
        }
        bend[at] = moved;
    }
}

/* Sort the bends of runs low, ..., high - 1, each of which is sorted: run i ends before stop[i], or
 * without `stop` is bend i. `begin` is where run `low` begins. */
static void
merge_runs(dpq_fit_bend *bend, dpq_fit_bend *spare, const size_t *stop, size_t begin, size_t low,
           size_t high)
{
    size_t middle = low + (high - low) / 2, end = stop ? stop[high - 1] : high, cut, held, at;

    if (high - low <= 1) {
        return;
    }
    if (end - begin <= FEW) {
        insert_each(bend + begin, end - begin);
        return;
    }
    cut = stop ? stop[middle - 1] : middle;
    merge_runs(bend, spare, stop, begin, low, middle);
    merge_runs(bend, spare, stop, cut, middle, high);
    /* The shorter half moves out of the way, so that `spare` need not hold more than a half. */
    if (cut - begin <= end - cut) {
        size_t right = cut;

        held = cut - begin;
        memcpy(spare, bend + begin, held * sizeof *bend);
        at = begin;
        for (size_t left = 0; left < held; at++) {
            bend[at] = right < end && bend[right].price < spare[left].price ? bend[right++]
                                                                            : spare[left++];
        }
    } else {
        size_t left = cut;

        held = end - cut;
        memcpy(spare, bend + cut, held * sizeof *bend);
        at = end;
        for (size_t right = held; right > 0; at--) {
            bend[at - 1] = left > begin && bend[left - 1].price > spare[right - 1].price
                               ? bend[--left]
                               : spare[--right];
        }
    }
}

/* From the prices that a node offers to its children to those that it is offered. */
static void
move_up(dpq_fit_bend *bend, size_t size, double count)
{
    double slope = 0.0, mass = 0.0, last = 0.0;

    for (size_t i = 0; i < size; i++) {
        double steeper = slope + bend[i].slope, price = bend[i].price;

        if (i > 0) {
            mass += slope * (price - last);
        }
        bend[i].price = (price - count) + mass;
        bend[i].slope /= (1.0 + slope) * (1.0 + steeper);
        slope = steeper;
        last = price;
    }
}

/* How many of the bends lie below the price of the total. */
static size_t
bends_below(const dpq_fit_bend *bend, size_t size, double total)
{
    double slope = 0.0, mass = 0.0;
    size_t i = 0;

    for (; i < size; i++) {
        if (i > 0) {
            mass += slope * (bend[i].price - bend[i - 1].price);
            if (!(mass < total)) {
                break;
            }
        }
        slope += bend[i].slope;
    }
    return i;
}

/* The price that a node offers to its children, which then have the mass offset + gain * price. */
static double
offered(double count, double offset, double gain, double price)
{
    return isnan(count) ? price : (price + count - offset) / (1.0 + gain);
}

/* One past the last child of inner node v: of those of the level below, `child` is its first one; of
 * the lowest level they are the leaves. */
static size_t
children_stop(const dpq_fit_tree *tree, size_t level, size_t v, size_t child)
{
    if (level == 0) {
        return tree->stop[v];
    }
    while (tree->stop[child] < tree->stop[v]) {
        child++;
    }
    return child + 1;
}

void
dpq_fit_masses(const dpq_fit_tree *tree, const double *leaf_count, const double *node_count,
               double total, double *mass, dpq_fit_bend *bend, dpq_fit_bend *spare, double *offset,
               double *gain)
{
    size_t leaves = tree->leaves, positive, root = tree->first[tree->levels] - 1;

    for (size_t i = 0; i < leaves; i++) {
        bend[i] = (dpq_fit_bend){-leaf_count[i], 1.0, i};
        mass[i] = 0.0;
    }
    for (size_t level = 0; level < tree->levels; level++) {
        size_t child = level > 0 ? tree->first[level - 1] : 0, begin = 0;

        for (size_t v = tree->first[level]; v < tree->first[level + 1]; v++) {
            size_t end = children_stop(tree, level, v, child);

            merge_runs(bend, spare, level > 0 ? tree->stop : NULL, begin, child, end);
            if (!isnan(node_count[v])) {
                move_up(bend + begin, tree->stop[v] - begin, node_count[v]);
            }
            child = end;
            begin = tree->stop[v];
        }
    }
    positive = bends_below(bend, leaves, total);
    for (size_t i = 0; i < positive; i++) {
        mass[bend[i].leaf] = 1.0; /* for now, by how much it rises with its price */
    }

    /* From below: the mass of a node is offset + gain times what it offers to its children. */
    for (size_t level = 0; level < tree->levels; level++) {
        size_t child = level > 0 ? tree->first[level - 1] : 0;

        for (size_t v = tree->first[level]; v < tree->first[level + 1]; v++) {
            size_t end = children_stop(tree, level, v, child);
            double sum = 0.0, slope = 0.0;

            for (; child < end; child++) {
                if (level == 0) {
                    sum += mass[child] > 0.0 ? leaf_count[child] : 0.0;
                    slope += mass[child];
                } else if (isnan(node_count[child])) {
                    sum += offset[child];
                    slope += gain[child];
                } else {
                    sum += (offset[child] + gain[child] * node_count[child]) / (1.0 + gain[child]);
                    slope += gain[child] / (1.0 + gain[child]);
                }
            }
            offset[v] = sum;
            gain[v] = slope;
        }
    }

    /* From above: what each node offers, which takes the place of its offset. */
    offset[root] = (total - offset[root]) / gain[root];
    for (size_t level = tree->levels; level-- > 0;) {
        size_t child = level > 0 ? tree->first[level - 1] : 0;

        for (size_t v = tree->first[level]; v < tree->first[level + 1]; v++) {
            size_t end = children_stop(tree, level, v, child);

            for (; child < end; child++) {
                if (level > 0) {
                    offset[child] =
                        offered(node_count[child], offset[child], gain[child], offset[v]);
                } else if (mass[child] > 0.0) {
                    mass[child] = fmax(leaf_count[child] + offset[v], 0.0);
                }
            }
        }
    }
}
