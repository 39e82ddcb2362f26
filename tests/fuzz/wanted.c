#include "wanted.h"

#include "fuzz.h"

#define MOST_BUCKETS 3000

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size, 1};
    size_t buckets = (size_t)fuzz_between(&in, 1, DPQ_WANTED_BUCKETS + 1);
    size_t n = (size_t)fuzz_between(&in, 0, MOST_BUCKETS), expected = 0, found;
    int64_t rare = fuzz_between(&in, 0, 40), in_a_row = fuzz_between(&in, 1, 100);
    uint8_t *flag = fuzz_room(buckets, sizeof *flag);
    uint32_t *bucket = fuzz_room(n, sizeof *bucket);
    uint16_t *place = fuzz_room(n + DPQ_WANTED_SPARE, sizeof *place);
    dpq_wanted wanted;

    for (size_t b = 0; b < buckets; b++) {
        int64_t since = in_a_row > 1 ? (int64_t)b % (in_a_row + rare) : fuzz_between(&in, 0, rare);

        flag[b] = since < in_a_row ? (uint8_t)fuzz_between(&in, 1, 255) : 0;
    }
    for (size_t i = 0; i < n; i++) {
        bucket[i] = (uint32_t)fuzz_between(&in, 0, DPQ_WANTED_BUCKETS);
    }
    dpq_wanted_of(&wanted, buckets, flag);
    found = dpq_wanted_find(&wanted, n, bucket, place);
    for (size_t i = 0; i < n; i++) {
        if (bucket[i] < buckets && flag[bucket[i]] != 0) {
            CHECK(expected < found && place[expected] == i);
            expected++;
        }
    }
    CHECK(found == expected);
    free(flag);
    free(bucket);
    free(place);
    return 0;
}
