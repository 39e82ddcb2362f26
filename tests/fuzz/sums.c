#include "sums.h"

#include "fuzz.h"

#define MOST_VALUES 3000

__extension__ typedef __int128 i128;

static double
draw_scale(fuzz_input *in)
{
    return fuzz_bit(in) ? ldexp(1.0, (int)fuzz_between(in, -1074, 1023)) : fuzz_positive(in);
}

/* Any number, or one halfway between integers, or near. */
static double
draw_value(double scale, fuzz_input *in)
{
    double halves;

    if (fuzz_bit(in)) {
        return fuzz_number(in);
    }
    halves = (double)fuzz_between(in, -4 * DPQ_SUMS_REACH, 4 * DPQ_SUMS_REACH) / 2.0 / scale;
    return fuzz_bit(in) ? halves : nextafter(halves, fuzz_number(in));
}

static int64_t
draw_weight(int64_t left, fuzz_input *in)
{
    uint64_t kind = fuzz_bytes(in, 1);

    return kind < 240 ? fuzz_between(in, 0, left >> fuzz_between(in, 0, 62)) : left;
}

static int64_t
rounded(double value, double scale, int64_t first, int64_t last)
{
    double position = value * scale;

    return position < (double)first  ? first
           : position > (double)last ? last
                                     : (int64_t)fuzz_nearest(position);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size, 1};
    double scale = draw_scale(&in);
    int64_t reach = DPQ_SUMS_REACH >> fuzz_between(&in, 0, 31);
    int64_t a = fuzz_between(&in, -reach, reach), b = fuzz_bit(&in) ? reach : -reach;
    int64_t first = a < b ? a : b, last = a < b ? b : a;
    size_t n = fuzz_size(&in, MOST_VALUES), numbers = 0;
    double *value = fuzz_room(n, sizeof *value);
    int64_t *weight = fuzz_room(n, sizeof *weight), left = INT64_MAX, weights = 0, total = -1;
    i128 sum = 0, weighted = 0, squared = 0, weighted_squared = 0;
    int64_t middle = first + (last - first) / 2, squares = -1;
    int is_narrow = last - first <= 2 * DPQ_SUMS_ASIDE;
    dpq_sums_wide wide = {-1, 1}, wide_squares = {-1, 1};
    dpq_column column;

    for (size_t i = 0; i < n; i++) {
        value[i] = draw_value(scale, &in);
        weight[i] = draw_weight(left, &in);
        left -= weight[i];
        if (!isnan(value[i])) {
            int64_t integer = rounded(value[i], scale, first, last);

            numbers++;
            weights += weight[i];
            sum += integer;
            weighted += (i128)integer * weight[i];
            if (is_narrow) {
                int64_t aside = integer - middle;

                squared += aside * aside;
                weighted_squared += (i128)(aside * aside) * weight[i];
            }
        }
    }
    column.value = value;
    column.kind = DPQ_FLOAT64;
    CHECK(dpq_sums_plain(n, &column, scale, first, last, &total) == numbers && total == sum);
    CHECK(dpq_sums_weighted(n, value, weight, scale, first, last, &wide) == weights);
    CHECK((i128)wide.high * ((i128)1 << 64) + wide.low == weighted);
    if (is_narrow) {
        CHECK(dpq_sums_squares(n, &column, scale, first, last, middle, &total, &squares) ==
              numbers);
        CHECK(total == sum && squares == squared);
        CHECK(dpq_sums_weighted_squares(n, value, weight, scale, first, last, middle, &wide,
                                        &wide_squares) == weights);
        CHECK((i128)wide.high * ((i128)1 << 64) + wide.low == weighted);
        CHECK((i128)wide_squares.high * ((i128)1 << 64) + wide_squares.low == weighted_squared);
    }
    free(weight);
    free(value);
    return 0;
}
