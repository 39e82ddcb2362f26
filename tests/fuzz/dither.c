#include "dither.h"

#include "fuzz.h"

#define MOST_BLOCKS 8
#define MOST_QUESTIONS 6
#define MOST_ROOMS 2400 /* as many as there are places */

/* Slots for all stretches of these places besides `drawn` others. */
static void
grow(dpq_dither *d, size_t drawn, int64_t start, int64_t stop)
{
    size_t more = (size_t)(((stop - 1) >> d->stretch_bits) - (start >> d->stretch_bits) + 1);
    dpq_dither old = *d;

    while (d->slots <= drawn + more) {
        d->slots *= 2;
    }
    if (d->slots > old.slots) {
        d->slot = calloc(d->slots, sizeof *d->slot);
        CHECK(d->slot != NULL);
        dpq_dither_move(&old, d);
        free(old.slot);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size, 1};
    bitgen_t rng;
    dpq_dither d = {(int)fuzz_between(&in, 1, 32), (int)fuzz_between(&in, 0, 10), NULL, 1, NULL, 0};
    void *rooms[MOST_ROOMS];
    size_t made = 0, drawn = 0;
    size_t blocks = (size_t)fuzz_between(&in, 1, MOST_BLOCKS);
    int64_t shift = fuzz_between(&in, 0, INT64_C(1) << 40), n = 0, largest = 0;
    int64_t end[MOST_BLOCKS], value[MOST_BLOCKS];
    int64_t *offset, *fine, *point;
    uint32_t *work;

    d.slot = calloc(1, sizeof *d.slot);
    CHECK(d.slot != NULL);
    for (size_t i = 0; i < blocks; i++) {
        int64_t records = fuzz_bit(&in) ? fuzz_between(&in, 1, 9) : fuzz_between(&in, 1, 300);

        value[i] = (i > 0 ? value[i - 1] + 1 : 0) + fuzz_between(&in, 0, 1);
        end[i] = n += records;
        largest = records > largest ? records : largest;
    }
    point = fuzz_room((size_t)n, sizeof *point);
    for (size_t i = 0, k = 0; i < blocks; i++) {
        for (; k < (size_t)end[i]; k++) {
            point[k] = value[i];
        }
    }
    rng = fuzz_generator(&in);
    work = fuzz_room(3 * (size_t)(largest + DPQ_DITHER_PADDING), sizeof *work);
    offset = fuzz_room((size_t)n, sizeof *offset);
    fine = fuzz_room((size_t)n, sizeof *fine);
    for (int i = 0; i < MOST_QUESTIONS; i++) {
        int64_t start = fuzz_between(&in, 0, n - 1), stop = fuzz_between(&in, start + 1, n);
        int64_t at = fuzz_between(&in, -1, (INT64_C(1) << d.bits) + 1), below = 0, low = 0, high = n;
        int64_t *part = fuzz_room((size_t)(stop - start), sizeof *part);
        dpq_dither_window window;

        for (size_t b = 0; b < blocks; b++) {
            low = end[b] <= start ? end[b] : low;
            high = end[b] >= stop && end[b] < high ? end[b] : high;
        }
        memcpy(part, point + start, (size_t)(stop - start) * sizeof *part);
        window = (dpq_dither_window){shift + start, shift + stop, part, shift + low, shift + high};
        CHECK(dpq_dither_fits(&window, largest));
        if (!dpq_dither_drawn(&d, shift + low, shift + high)) {
            int64_t from = shift + low;

            grow(&d, drawn, shift + low, shift + high);
            while ((from = dpq_dither_draw(&d, from, shift + high, &rng)) < shift + high) {
                CHECK(from >= shift + low - ((INT64_C(1) << d.stretch_bits) - 1) && made < MOST_ROOMS);
                d.left = (size_t)fuzz_between(&in, 1, 3);
                drawn += d.left;
                d.room = rooms[made++] = fuzz_room(d.left << d.stretch_bits, sizeof *d.room);
            }
            CHECK(dpq_dither_drawn(&d, shift + low, shift + high));
        }
        dpq_dither_read(&d, shift + low, shift + high, offset);
        for (int64_t k = 0; k < high - low; k++) {
            CHECK(offset[k] >= 0 && offset[k] >> d.bits == 0);
            below += offset[k] < at;
        }
        CHECK(dpq_dither_below(&d, shift + low, shift + high, at) == below);
        dpq_dither_points(&d, &window, work, fine);
        /* the blocks, laid out */
        for (int64_t k = 0; k < high - low; k++) {
            offset[k] += point[low + k] * (INT64_C(1) << d.bits);
        }
        qsort(offset, (size_t)(high - low), sizeof *offset, fuzz_compare_integers);
        for (int64_t k = start; k < stop; k++) {
            CHECK(fine[k - start] == offset[k - low]);
        }
        /* one block is too large, or another */
        for (size_t b = 0; b < blocks; b++) {
            int64_t records = end[b] - (b > 0 ? end[b - 1] : 0);

            CHECK(end[b] <= low || end[b] > high || !dpq_dither_fits(&window, records - 1));
        }
        free(part);
    }
    free(work);
    free(offset);
    free(fine);
    free(point);
    while (made > 0) {
        free(rooms[--made]);
    }
    free(d.slot);
    return 0;
}
