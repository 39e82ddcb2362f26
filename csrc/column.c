#include "column.h"

#include <stdint.h>

#include "vector.h"

#define READ(name, type)                                       \
    DPQ_VECTORIZED static void                                 \
    name(size_t n, const type *value, double *restrict number) \
    {                                                          \
        for (size_t i = 0; i < n; i++) {                       \
            number[i] = (double)value[i];                      \
        }                                                      \
    }

READ(read_float32, float)
READ(read_int64, int64_t)
READ(read_int32, int32_t)
READ(read_int16, int16_t)
READ(read_int8, int8_t)
READ(read_uint64, uint64_t)
READ(read_uint32, uint32_t)
READ(read_uint16, uint16_t)
READ(read_uint8, uint8_t)

size_t
dpq_column_width(const dpq_column *column)
{
    static const unsigned char width[DPQ_KINDS] = {
        [DPQ_FLOAT64] = 8, [DPQ_FLOAT32] = 4, [DPQ_INT64] = 8,  [DPQ_INT32] = 4,  [DPQ_INT16] = 2,
        [DPQ_INT8] = 1,    [DPQ_UINT64] = 8,  [DPQ_UINT32] = 4, [DPQ_UINT16] = 2, [DPQ_UINT8] = 1,
    };

    return width[column->kind];
}

size_t
dpq_column_block(const dpq_column *column, size_t start, size_t n, size_t most)
{
    size_t width = dpq_column_width(column);
    uintptr_t at = (uintptr_t)column->value + start * width;
    size_t left = most - at % DPQ_COLUMN_LINE / width;

    return n - start < left ? n - start : left;
}

const char *
dpq_column_ahead(const dpq_column *column, size_t start, size_t n)
{
    size_t next = n - start >= 2 * DPQ_COLUMN_BLOCK ? start + DPQ_COLUMN_BLOCK : start;

    return (const char *)column->value + next * dpq_column_width(column);
}

const double *
dpq_column_read(const dpq_column *column, size_t start, size_t n, double *room)
{
    switch (column->kind) {
    case DPQ_FLOAT32:
        read_float32(n, (const float *)column->value + start, room);
        break;
    case DPQ_INT64:
        read_int64(n, (const int64_t *)column->value + start, room);
        break;
    case DPQ_INT32:
        read_int32(n, (const int32_t *)column->value + start, room);
        break;
    case DPQ_INT16:
        read_int16(n, (const int16_t *)column->value + start, room);
        break;
    case DPQ_INT8:
        read_int8(n, (const int8_t *)column->value + start, room);
        break;
    case DPQ_UINT64:
        read_uint64(n, (const uint64_t *)column->value + start, room);
        break;
    case DPQ_UINT32:
        read_uint32(n, (const uint32_t *)column->value + start, room);
        break;
    case DPQ_UINT16:
        read_uint16(n, (const uint16_t *)column->value + start, room);
        break;
    case DPQ_UINT8:
        read_uint8(n, (const uint8_t *)column->value + start, room);
        break;
    case DPQ_FLOAT64:
    case DPQ_KINDS: /* no kind */
        return (const double *)column->value + start;
    }
    return room;
}
