/* The rows of each of many groups put together. */
#ifndef DPQ_GROUPS_SCATTER_H
#define DPQ_GROUPS_SCATTER_H

#include <stddef.h>
#include <stdint.h>

/* Groups are handled in chunks of 2^shift consecutive ones: group g is member g % 2^shift of chunk
 * g / 2^shift. What one pass over all rows scatters to is chunks, few enough to stay in the cache;
 * then a chunk of 2^DPQ_GROUPS_MOST small groups fits into it, too. */
#define DPQ_GROUPS_MOST 10

/* Which group a key stands for: table[key - lowest], or key - lowest itself. */
typedef struct {
    int64_t lowest;       /* the key of entry 0 */
    uint64_t span;        /* number of entries; keys outside belong to no group */
    const int32_t *table; /* IN, length `span`: group, or negative for none; NULL for identity */
    int shift;            /* of chunks, at most DPQ_GROUPS_MOST */
} dpq_groups_keys;

/* Count rows by chunk.
 *
 *   n            rows
 *   key          IN, length n
 *   count        IN OUT, one for each chunk: the rows of its groups are added
 *
 * Cost      O(n), no allocation, reentrant.
 */
void
dpq_groups_count(const dpq_groups_keys *keys, size_t n, const int64_t *key, int64_t *count);

/* Put the rows of each chunk together, in their order; rows of no group are left out.
 *
 *   n            rows
 *   key, value   IN, length n
 *   place        IN OUT, one for each chunk: where its next row goes
 *   end          IN, one for each chunk: where its room ends; a row too many (keys that changed
 *                since they were counted) is left out
 *   grouped      OUT, the values
 *   member       OUT, number of each row's group within its chunk
 *
 * Returns   how many of the rows put there are NaN.
 * Cost      O(n), no allocation, reentrant for disjoint places.
 */
int64_t
dpq_groups_scatter(const dpq_groups_keys *keys, size_t n, const int64_t *key, const double *value,
                   int64_t *place, const int64_t *end, double *grouped, uint16_t *member);

/* Put the rows of each group of one chunk together, in their order, without NaN.
 *
 *   n            rows
 *   value        IN, length n
 *   member       IN, length n, each below `groups` (not checked)
 *   groups       groups in this chunk
 *   start        OUT, length groups + 1: group g has the rows start[g], ..., start[g + 1] - 1
 *   ordered      OUT, room for n
 */
void
dpq_groups_order(size_t n, const double *value, const uint16_t *member, size_t groups,
                 int64_t *start, double *ordered);

#endif
