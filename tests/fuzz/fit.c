#include "fit.h"

#include <math.h>

#include "fuzz.h"

#define MOST_LEAVES 60
#define MOST_LEVELS 6
#define ACCURACY 1e-12

/* How hard counts pull at a leaf: its own, and those of the nodes that it is in. */
static double
pull_at(const dpq_fit_tree *tree, const double *leaf_count, const double *node_count,
        const double *mass, size_t leaf)
{
    double pull = leaf_count[leaf] - mass[leaf];

    for (size_t level = 0; level < tree->levels; level++) {
        size_t v = tree->first[level], begin = 0;
        double sum = 0.0;

        for (; tree->stop[v] <= leaf; v++) {
            begin = tree->stop[v];
        }
        for (size_t i = begin; i < tree->stop[v]; i++) {
            sum += mass[i];
        }
        pull += isnan(node_count[v]) ? 0.0 : node_count[v] - sum;
    }
    return pull;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size, 1};
    size_t leaves = (size_t)fuzz_between(&in, 1, MOST_LEAVES);
    size_t levels = (size_t)fuzz_between(&in, 1, MOST_LEVELS), nodes = 0;
    size_t *first = fuzz_room(levels + 1, sizeof *first);
    size_t *stop = fuzz_room(leaves * levels, sizeof *stop);
    double *leaf_count = fuzz_room(leaves, sizeof *leaf_count);
    double *node_count = fuzz_room(leaves * levels, sizeof *node_count);
    double *mass = fuzz_room(leaves, sizeof *mass), *offset, *gain;
    dpq_fit_bend *bend = fuzz_room(leaves, sizeof *bend);
    dpq_fit_bend *spare = fuzz_room(leaves / 2, sizeof *spare);
    dpq_fit_tree tree = {leaves, levels, first, stop};
    int64_t reach = fuzz_bit(&in) ? 5 : (int64_t)1 << fuzz_between(&in, 0, 50);
    double total = (double)fuzz_between(&in, 1, reach), most = -INFINITY, sum = 0.0, room;
    int any = fuzz_between(&in, 0, 7) == 0; /* numbers that mean nothing: only safe */

    first[0] = 0;
    for (size_t level = 0; level < levels; level++) {
        size_t below = level > 0 ? first[level] - first[level - 1] : leaves;

        for (size_t i = 0; i < below; i++) {
            size_t end = level > 0 ? stop[first[level - 1] + i] : i + 1;

            if (end == leaves || (level + 1 < levels && fuzz_bit(&in))) {
                stop[nodes++] = end;
            }
        }
        first[level + 1] = nodes;
    }
    for (size_t i = 0; i < leaves; i++) {
        leaf_count[i] = any ? fuzz_number(&in) : (double)fuzz_between(&in, -reach, reach);
    }
    for (size_t v = 0; v < nodes; v++) {
        node_count[v] = any ? fuzz_number(&in) : (double)fuzz_between(&in, -reach, reach);
        node_count[v] = fuzz_between(&in, 0, 3) ? node_count[v] : NAN;
    }
    offset = fuzz_room(nodes, sizeof *offset);
    gain = fuzz_room(nodes, sizeof *gain);
    dpq_fit_masses(&tree, leaf_count, node_count, total, mass, bend, spare, offset, gain);
    room = ACCURACY * (double)leaves * (double)reach;
    for (size_t i = 0; i < leaves && !any; i++) {
        CHECK(mass[i] >= 0.0);
        sum += mass[i];
        most = fmax(most, pull_at(&tree, leaf_count, node_count, mass, i));
    }
    CHECK(any || fabs(sum - total) <= room);
    for (size_t i = 0; i < leaves && !any; i++) {
        CHECK(mass[i] <= room ||
              most - pull_at(&tree, leaf_count, node_count, mass, i) <= room);
    }
    free(gain);
    free(offset);
    free(spare);
    free(bend);
    free(mass);
    free(node_count);
    free(leaf_count);
    free(stop);
    free(first);
    return 0;
}
