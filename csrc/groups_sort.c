#include "groups_sort.h"

#include "dither.h"
#include "lanes.h"
#include "vector.h"

#define NETWORK 16 /* points that one sorting network sorts */
#define COLUMNS 8  /* networks that work side by side */
#define TILE 128   /* rows of lanes that are sorted at once */

/* Sorting: points are rows of 2^k columns; all columns are sorted at once by a network over the rows,
 * then merged pairwise. What fills up the last row is the largest integer. */

static size_t
columns_of(size_t n)
{
    size_t columns = COLUMNS;

    while (columns * NETWORK < n) {
        columns *= 2;
    }
    return columns;
}

size_t
dpq_groups_room(size_t n)
{
    size_t columns = columns_of(n);

    return (n + columns - 1) / columns * columns;
}

/* The smaller of each two points to a, the larger to b. */
static inline void
exchange(size_t n, int64_t *restrict a, int64_t *restrict b)
{
    for (size_t i = 0; i < n; i++) {
        int64_t low = a[i] < b[i] ? a[i] : b[i], high = a[i] < b[i] ? b[i] : a[i];

        a[i] = low;
        b[i] = high;
    }
}

/* Merge runs of `run` rows, pairwise: the last stages of an odd-even merge sort by Batcher, where every
 * exchange brings the smaller points to the lower row, so that rows that are missing do not matter. */
static inline void
merge_columns(size_t rows, size_t columns, size_t run, int64_t *point)
{
    for (size_t apart = run; apart > 0; apart /= 2) {
        /* stretches of `apart` rows, each with the next one, inside of merged runs */
        for (size_t row = apart % run; row + apart < rows; row += 2 * apart) {
            size_t size = rows - row - apart < apart ? rows - row - apart : apart;

            if ((row ^ (row + apart)) < 2 * run) {
                exchange(size * columns, point + row * columns, point + (row + apart) * columns);
            }
        }
    }
}

/* Sort the columns of some rows, runs of `run` of which are sorted. */
DPQ_VECTORIZED static void
sort_columns(size_t rows, size_t columns, size_t run, int64_t *point)
{
    for (; run < rows; run *= 2) {
        merge_columns(rows, columns, run, point);
    }
}

/* TILE rows by themselves, which stay in the nearest cache, then twice as many, and so on. */
void
dpq_groups_sort_lanes(size_t rows, int64_t *point)
{
    size_t half = 1;

    if (rows <= TILE) {
        sort_columns(rows, DPQ_LANES, 1, point);
        return;
    }
    while (2 * half < rows) {
        half *= 2;
    }
    dpq_groups_sort_lanes(half, point);
    dpq_groups_sort_lanes(rows - half, point + half * DPQ_LANES);
    sort_columns(rows, DPQ_LANES, half, point);
}

/* Merge two runs of `length`, `apart` from each point to the next, from both ends at once: either end
 * stops after `length` points, before it could leave a run. */
static inline void
merge(size_t length, size_t apart, const int64_t *first, const int64_t *second, int64_t *merged)
{
    size_t a = 0, b = 0, c = (length - 1) * apart, d = c;

    for (size_t i = 0; i < length; i++) {
        int64_t low = first[a], low_b = second[b], high = second[d], high_c = first[c];
        size_t from_b = low_b < low, from_c = high_c > high;

        merged[i] = from_b ? low_b : low;
        b += apart & (0 - from_b); /* apart or 0, without a branch */
        a += apart & (from_b - 1);
        merged[2 * length - 1 - i] = from_c ? high_c : high;
        c -= apart & (0 - from_c); /* below 0 only after the last read */
        d -= apart & (from_c - 1);
    }
}

int64_t *
dpq_groups_sort(size_t n, int64_t *point, int64_t *spare)
{
    size_t columns = columns_of(n), room = dpq_groups_room(n), length = room / columns;

    for (size_t i = n; i < room; i++) {
        point[i] = INT64_MAX;
    }
    sort_columns(length, columns, 1, point);
    for (size_t i = 0; i < columns; i += 2) {
        merge(length, columns, point + i, point + i + 1, spare + i * length);
    }
    for (length *= 2; length < room; length *= 2) {
        int64_t *swap = point;

        point = spare;
        spare = swap;
        for (size_t i = 0; i < room; i += 2 * length) {
            merge(length, 1, point + i, point + i + length, spare + i);
        }
    }
    return spare;
}

/* Whether some lanes have a point twice, of n rows in order. */
DPQ_VECTORIZED static int
any_tied(size_t n, const int64_t *column)
{
    int64_t tied = 0;

    for (size_t i = DPQ_LANES; i < DPQ_LANES * n; i++) {
        tied |= column[i] == column[i - DPQ_LANES];
    }
    return tied != 0;
}

/* n rows of points, of which no lane has one twice, moved by an offset for each lane. */
DPQ_VECTORIZED static void
move_lanes(size_t n, int64_t *column, int bits, const int64_t *offset)
{
    const int64_t size = INT64_C(1) << bits;

    for (size_t i = 0; i < n; i++, column += DPQ_LANES) {
        for (size_t l = 0; l < DPQ_LANES; l++) {
            column[l] = column[l] * size + offset[l];
        }
    }
}

void
dpq_groups_dither_lanes(int bits, size_t n, int64_t *column, int64_t *point, bitgen_t *rng)
{
    dpq_dither dithers[DPQ_LANES];
    int64_t offset[DPQ_LANES];

    for (size_t l = 0; l < DPQ_LANES; l++) {
        dithers[l] = dpq_dither_draw(bits, rng);
        offset[l] = dithers[l].shift; /* where the first record of a point lies */
    }
    if (!any_tied(n, column)) {
        move_lanes(n, column, bits, offset);
        return;
    }
    for (size_t l = 0; l < DPQ_LANES; l++) {
        for (size_t i = 0; i < n; i++) {
            point[i] = column[DPQ_LANES * i + l];
        }
        dpq_dither_points(&dithers[l], n, point, 0, 0);
        for (size_t i = 0; i < n; i++) {
            column[DPQ_LANES * i + l] = point[i];
        }
    }
}
