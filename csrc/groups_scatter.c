#include "groups_scatter.h"

#include <math.h>
#include <string.h>

#include "vector.h"

#define VALUES_AHEAD 8   /* a line of the cache: what is scattered to next in the same place */
#define MEMBERS_AHEAD 32

/* Group of a key, or -1. */
static int64_t
group_of(const dpq_groups_keys *keys, int64_t key)
{
    uint64_t entry = (uint64_t)key - (uint64_t)keys->lowest; /* below `lowest`: wraps to a large one */

    if (entry >= keys->span) {
        return -1;
    }
    return keys->table ? keys->table[entry] : (int64_t)entry;
}

void
dpq_groups_count(const dpq_groups_keys *keys, size_t n, const int64_t *key, int64_t *count)
{
    for (size_t i = 0; i < n; i++) {
        int64_t group = group_of(keys, key[i]);

        if (group >= 0) {
            count[group >> keys->shift]++;
        }
    }
}

int64_t
dpq_groups_scatter(const dpq_groups_keys *keys, size_t n, const int64_t *key, const double *value,
                   int64_t *place, const int64_t *end, double *grouped, uint16_t *member)
{
    int64_t missing = 0;

    for (size_t i = 0; i < n; i++) {
        int64_t group = group_of(keys, key[i]);

        if (group >= 0) {
            int64_t chunk = group >> keys->shift, at = place[chunk];

            if (at < end[chunk]) {
                grouped[at] = value[i];
                member[at] = (uint16_t)(group - (chunk << keys->shift));
                DPQ_PREFETCH(grouped + at + VALUES_AHEAD);
                DPQ_PREFETCH(member + at + MEMBERS_AHEAD);
                place[chunk] = at + 1;
                missing += isnan(value[i]) != 0;
            }
        }
    }
    return missing;
}

void
dpq_groups_order(size_t n, const double *value, const uint16_t *member, size_t groups,
                 int64_t *start, double *ordered)
{
    int64_t total = 0, kept = 0, missing = 0;

    memset(start, 0, (groups + 1) * sizeof *start);
    for (size_t i = 0; i < n; i++) {
        start[member[i] + 1]++;
    }
    /* start[g + 1] is where group g's next row goes, and so in the end where group g + 1 starts */
    for (size_t g = 1; g <= groups; g++) {
        int64_t size = start[g];

        start[g] = total;
        total += size;
    }
    for (size_t i = 0; i < n; i++) {
        ordered[start[member[i] + 1]++] = value[i];
        missing += isnan(value[i]) != 0;
    }
    /* mostly there are none */
    for (size_t g = 0, i = 0; missing > 0 && g < groups; g++) {
        for (; i < (size_t)start[g + 1]; i++) {
            ordered[kept] = ordered[i];
            kept += !isnan(ordered[i]);
        }
        start[g + 1] = kept;
    }
}
