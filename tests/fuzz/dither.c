#include "dither.h"

#include "fuzz.h"

#define MOST_RECORDS 300

static int
compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* s(i), bit by bit. */
static int64_t
offset_of(int64_t i, int bits, uint64_t shift)
{
    int64_t offset = 0;

    for (int k = 0; k < bits; k++) {
        offset = 2 * offset + (i >> k & 1);
    }
    return offset ^ (int64_t)shift;
}

static int
is_asked(size_t asked, const int64_t *place, int64_t start, int64_t end)
{
    for (size_t k = 0; k < asked; k++) {
        if (start <= place[k] && place[k] < end) {
            return 1;
        }
    }
    return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size, 1};
    int bits = (int)fuzz_between(&in, 1, 32);
    uint64_t word = (uint64_t)fuzz_between(&in, INT64_MIN, INT64_MAX);
    dpq_dither d = dpq_dither_of(bits, word);
    int64_t value = fuzz_between(&in, 0, 1 << 20), whole = INT64_C(1) << bits, n = 0;
    int64_t *point = fuzz_room(4 * MOST_RECORDS, sizeof *point);
    int64_t *fine = fuzz_room(4 * MOST_RECORDS, sizeof *fine);

    CHECK(d.shift == word % (uint64_t)whole);
    for (int64_t blocks = fuzz_between(&in, 1, 4); blocks > 0; blocks--) {
        int64_t count = fuzz_between(&in, 1, fuzz_bit(&in) ? 3 : MOST_RECORDS);
        int64_t *offset = fuzz_room((size_t)count, sizeof *offset);
        int64_t at = fuzz_between(&in, -1, whole + 1), below = 0;

        for (int64_t i = 0; i < count; i++) {
            offset[i] = offset_of(i % whole, bits, d.shift);
            below += offset[i] < at;
        }
        qsort(offset, (size_t)count, sizeof *offset, compare);
        CHECK(dpq_dither_below(&d, count, at) == below);
        for (int64_t i = 0; i < count; i++, n++) {
            point[n] = value;
            fine[n] = value * whole + offset[i];
        }
        value += fuzz_between(&in, 1, 3);
        free(offset);
    }
    for (int i = 0; i < 4; i++) { /* windows of them */
        int64_t start = fuzz_between(&in, 0, n - 1), stop = fuzz_between(&in, start + 1, n);
        int64_t before = 0, after = 0;
        int64_t *part = fuzz_room((size_t)(stop - start), sizeof *part);

        while (start > before && point[start - before - 1] == point[start]) {
            before++;
        }
        while (stop + after < n && point[stop + after] == point[stop - 1]) {
            after++;
        }
        memcpy(part, point + start, (size_t)(stop - start) * sizeof *part);
        dpq_dither_points(&d, (size_t)(stop - start), part, before, after);
        CHECK(memcmp(part, fine + start, (size_t)(stop - start) * sizeof *part) == 0);
        free(part);
    }
    for (int i = 0; i < 2; i++) { /* some of them alone */
        size_t asked = (size_t)fuzz_between(&in, 0, 100);
        size_t runs = 0;
        int64_t *room = fuzz_room(2 * asked + 3 * (size_t)n, sizeof *room);
        int64_t *place = room, *found = room + asked, *at = found + asked;
        int64_t *below = at + n, *above = below + n;

        for (size_t k = 0; k < asked; k++) {
            place[k] = fuzz_between(&in, 0, n - 1);
        }
        qsort(place, asked, sizeof *place, compare);
        for (int64_t start = 0, end; start < n; start = end) {
            for (end = start + 1; end < n && point[end] == point[start];) {
                end++;
            }
            /* not all are given */
            if (fuzz_bit(&in) || is_asked(asked, place, start, end)) {
                at[runs] = point[start];
                below[runs] = start;
                above[runs++] = end;
            }
        }
        CHECK(dpq_dither_at(&d, asked, place, runs, at, below, above, found) == asked);
        for (size_t k = 0; k < asked; k++) {
            CHECK(found[k] == fine[place[k]]);
        }
        if (asked > 0) { /* nor need they be there */
            size_t known = 0;

            above[runs - 1] = below[runs - 1];
            while (known < asked && place[known] < below[runs - 1]) {
                known++;
            }
            CHECK(dpq_dither_at(&d, asked, place, runs, at, below, above, found) == known);
        }
        free(room);
    }
    free(point);
    free(fine);
    return 0;
}
