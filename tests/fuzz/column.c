#include "column.h"

#include "fuzz.h"

#define READ(type)                                                \
    do {                                                          \
        type number;                                              \
                                                                  \
        memcpy(&number, bytes + i * sizeof number, sizeof number); \
        expected = (double)number;                                \
    } while (0)

/* One value, by the plainest cast. */
static double
value_of(dpq_column_kind kind, const uint8_t *bytes, size_t i)
{
    double expected = 0.0;

    switch (kind) {
    case DPQ_FLOAT64:
        READ(double);
        break;
    case DPQ_FLOAT32:
        READ(float);
        break;
    case DPQ_INT64:
        READ(int64_t);
        break;
    case DPQ_INT32:
        READ(int32_t);
        break;
    case DPQ_INT16:
        READ(int16_t);
        break;
    case DPQ_INT8:
        READ(int8_t);
        break;
    case DPQ_UINT64:
        READ(uint64_t);
        break;
    case DPQ_UINT32:
        READ(uint32_t);
        break;
    case DPQ_UINT16:
        READ(uint16_t);
        break;
    case DPQ_UINT8:
        READ(uint8_t);
        break;
    case DPQ_KINDS:
        break;
    }
    return expected;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size, 1};
    dpq_column column;
    size_t n = (size_t)fuzz_between(&in, 0, 2 * DPQ_COLUMN_BLOCK), start, some, width;
    uint8_t *bytes;
    double *room;
    const double *read;

    column.kind = (dpq_column_kind)fuzz_between(&in, 0, DPQ_KINDS - 1);
    width = dpq_column_width(&column);
    bytes = fuzz_room(n * width, 1);
    for (size_t i = 0; i < n * width; i++) {
        bytes[i] = (uint8_t)fuzz_bytes(&in, 1);
    }
    start = (size_t)fuzz_between(&in, 0, (int64_t)n);
    some = n - start < DPQ_COLUMN_BLOCK ? n - start : DPQ_COLUMN_BLOCK;
    room = fuzz_room(some, sizeof *room);
    column.value = bytes;
    read = dpq_column_read(&column, start, some, room);
    for (size_t i = 0; i < some; i++) {
        double expected = value_of(column.kind, bytes, start + i);

        CHECK(read[i] == expected || (isnan(read[i]) && isnan(expected)));
    }
    if (column.kind != DPQ_FLOAT64 && column.kind != DPQ_FLOAT32 && column.kind != DPQ_UINT64) {
        int64_t *wide = fuzz_room(some, sizeof *wide);
        const int64_t *integers = dpq_column_integers(&column, start, some, wide);

        for (size_t i = 0; i < some; i++) {
            CHECK((double)integers[i] == value_of(column.kind, bytes, start + i));
        }
        free(wide);
    }
    for (start = 0; start < n; start += some) { /* blocks hold all, and begin with a line */
        const char *ahead = dpq_column_ahead(&column, start, n);

        some = dpq_column_block(&column, start, n, DPQ_COLUMN_BLOCK);
        CHECK(0 < some && some <= DPQ_COLUMN_BLOCK && some <= n - start);
        CHECK(start == 0 || ((uintptr_t)bytes + start * width) % DPQ_COLUMN_LINE < width);
        CHECK((const char *)bytes <= ahead && ahead + some * width <= (const char *)bytes + n * width);
    }
    free(room);
    free(bytes);
    return 0;
}
