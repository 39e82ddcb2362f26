#include "groups_sort.h"

#include "dither.h"
#include "fuzz.h"
#include "lanes.h"

/* One group. */
static void
check_sort(fuzz_input *in)
{
    size_t n = (size_t)(fuzz_between(in, 0, 15) ? fuzz_between(in, 0, 300)
                                                : fuzz_between(in, 0, 5000));
    size_t room = dpq_groups_room(n);
    int64_t *point = fuzz_room(room, sizeof *point), *spare = fuzz_room(room, sizeof *spare);
    int64_t *expected = fuzz_room(n, sizeof *expected), *sorted;
    int few = fuzz_bit(in);

    CHECK(room >= n);
    for (size_t i = 0; i < n; i++) {
        expected[i] = point[i] = few && fuzz_between(in, 0, 15)
                                     ? fuzz_between(in, -2, 2)
                                     : fuzz_between(in, INT64_MIN, INT64_MAX);
    }
    qsort(expected, n, sizeof *expected, fuzz_compare_integers);
    sorted = dpq_groups_sort(n, point, spare);
    CHECK(sorted == point || sorted == spare);
    CHECK(n == 0 || memcmp(sorted, expected, n * sizeof *expected) == 0);
    free(expected);
    free(spare);
    free(point);
}

/* Groups side by side, each as if it were by itself. */
static void
check_lanes(fuzz_input *in)
{
    size_t n = (size_t)fuzz_between(in, 0, fuzz_between(in, 0, 15) ? 60 : 600);
    int64_t *column = fuzz_room(DPQ_LANES * n, sizeof *column);
    int64_t *expected = fuzz_room(DPQ_LANES * n, sizeof *expected); /* lane after lane */
    int64_t *point = fuzz_room(n, sizeof *point), most = fuzz_bit(in) ? 3 : INT64_C(1) << 20;
    int bits = (int)fuzz_between(in, 1, 32);
    fuzz_input same;
    bitgen_t rng = fuzz_generator(in), again = fuzz_generator(&same);

    for (size_t l = 0; l < DPQ_LANES; l++) {
        for (size_t i = 0; i < n; i++) {
            expected[l * n + i] = column[i * DPQ_LANES + l] = fuzz_between(in, 0, most);
        }
        qsort(expected + l * n, n, sizeof *expected, fuzz_compare_integers);
    }
    dpq_groups_sort_lanes(n, column);
    for (size_t l = 0; l < DPQ_LANES; l++) {
        for (size_t i = 0; i < n; i++) {
            CHECK(column[i * DPQ_LANES + l] == expected[l * n + i]);
        }
    }
    same = *in;
    dpq_groups_dither_lanes(bits, n, column, point, &rng);
    for (size_t l = 0; l < DPQ_LANES; l++) {
        dpq_dither dither = dpq_dither_draw(bits, &again);

        dpq_dither_points(&dither, n, expected + l * n, 0, 0);
        for (size_t i = 0; i < n; i++) {
            CHECK(column[i * DPQ_LANES + l] == expected[l * n + i]);
        }
    }
    CHECK(same.left == in->left && same.state == in->state);
    free(point);
    free(expected);
    free(column);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size, 1};

    if (fuzz_bit(&in)) {
        check_sort(&in);
    }
    else {
        check_lanes(&in);
    }
    return 0;
}
