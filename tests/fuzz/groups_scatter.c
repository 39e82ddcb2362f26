#include "groups_scatter.h"

#include "fuzz.h"

#define MOST_GROUPS 2100 /* three chunks */

/* The group a key stands for, or -1. */
static int64_t
group_of(const dpq_groups_keys *keys, int64_t key)
{
    for (uint64_t entry = 0; entry < keys->span; entry++) {
        if ((uint64_t)keys->lowest + entry == (uint64_t)key) {
            return keys->table ? keys->table[entry] : (int64_t)entry;
        }
    }
    return -1;
}

/* Rows put together by chunk, then by group; `room` is taken from what each chunk has room for. */
static void
check_rows(const dpq_groups_keys *keys, size_t groups, size_t n, const int64_t *key,
           const double *value, int64_t less)
{
    size_t chunk = (size_t)1 << keys->shift, chunks = (groups + chunk - 1) / chunk;
    size_t total = 0, found = 0;
    int64_t *count = calloc(chunks, sizeof *count), *group = fuzz_room(n, sizeof *group);
    int64_t *place = fuzz_room(chunks, sizeof *place), *end = fuzz_room(chunks, sizeof *end);
    int64_t missing = 0;
    double *grouped;
    uint16_t *member;

    CHECK(count != NULL);
    count[0] = 1; /* added to */
    dpq_groups_count(keys, n, key, count);
    count[0] -= 1;
    for (size_t c = 0; c < chunks; c++) {
        place[c] = (int64_t)total;
        total += (size_t)(count[c] > less ? count[c] - less : 0);
        end[c] = (int64_t)total;
    }
    for (size_t i = 0; i < n; i++) {
        group[i] = group_of(keys, key[i]);
        found += group[i] >= 0;
    }
    CHECK(less > 0 || found == total);
    grouped = fuzz_room(total, sizeof *grouped);
    member = fuzz_room(total, sizeof *member);
    missing = dpq_groups_scatter(keys, n, key, value, place, end, grouped, member);
    for (size_t c = 0, at = 0; c < chunks; c++) {
        size_t first = c * chunk, begin = at, rows, next = 0;
        size_t here = groups - first < chunk ? groups - first : chunk;
        int64_t *start = fuzz_room(here + 1, sizeof *start);
        double *ordered;

        for (size_t i = 0, of_chunk = 0; i < n; i++) {
            if (group[i] >= 0 && (size_t)group[i] / chunk == c) {
                of_chunk++;
                CHECK((int64_t)of_chunk <= count[c]);
                if ((int64_t)at < end[c]) {
                    CHECK(memcmp(grouped + at, value + i, sizeof *value) == 0);
                    CHECK(member[at] == (size_t)group[i] - first);
                    missing -= value[i] != value[i];
                    at++;
                }
            }
        }
        CHECK(place[c] == end[c] && (int64_t)at == end[c]);
        rows = at - begin;
        ordered = fuzz_room(rows, sizeof *ordered);
        dpq_groups_order(rows, grouped + begin, member + begin, here, start, ordered);
        CHECK(start[0] == 0);
        for (size_t g = 0; g < here; g++) {
            for (size_t i = begin; i < at; i++) {
                if (member[i] == g && grouped[i] == grouped[i]) {
                    CHECK(memcmp(ordered + next++, grouped + i, sizeof *ordered) == 0);
                }
            }
            CHECK(start[g + 1] == (int64_t)next);
        }
        free(ordered);
        free(start);
    }
    CHECK(missing == 0);
    free(member);
    free(grouped);
    free(end);
    free(place);
    free(group);
    free(count);
}

static void
check_keys(fuzz_input *in)
{
    int small = fuzz_between(in, 0, 7) != 0, identity = fuzz_bit(in);
    size_t groups = (size_t)fuzz_between(in, 1, small ? 20 : MOST_GROUPS);
    size_t n = (size_t)fuzz_between(in, 0, small ? 40 : 200);
    int64_t span = identity ? (int64_t)groups : fuzz_between(in, 0, (int64_t)groups + 20);
    int64_t *key = fuzz_room(n, sizeof *key);
    int32_t *table = fuzz_room((size_t)span, sizeof *table);
    double *value = fuzz_room(n, sizeof *value);
    dpq_groups_keys keys = {fuzz_bit(in) ? 0 : fuzz_between(in, INT64_MIN, INT64_MAX),
                            (uint64_t)span, identity ? NULL : table,
                            fuzz_bit(in) ? DPQ_GROUPS_MOST
                                         : (int)fuzz_between(in, 0, DPQ_GROUPS_MOST)};

    for (size_t i = 0; i < (size_t)span; i++) {
        table[i] = (int32_t)fuzz_between(in, -1, (int64_t)groups - 1);
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t near = (uint64_t)keys.lowest + (uint64_t)fuzz_between(in, -3, span + 3);

        key[i] = fuzz_between(in, 0, 7) ? (int64_t)near : fuzz_between(in, INT64_MIN, INT64_MAX);
        value[i] = fuzz_number(in);
    }
    check_rows(&keys, groups, n, key, value, fuzz_bit(in) ? 0 : fuzz_between(in, 0, 5));
    free(value);
    free(table);
    free(key);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size, 1};

    check_keys(&in);
    return 0;
}
