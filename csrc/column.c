#include "column.h"

#include "vector.h"

#define READ(name, type, as)                               \
    DPQ_VECTORIZED static void                             \
    name(size_t n, const type *value, as *restrict number) \
    {                                                      \
        for (size_t i = 0; i < n; i++) {                   \
            number[i] = (as)value[i];                      \
        }                                                  \
    }

READ(read_float32, float, double)
READ(read_int64, int64_t, double)
READ(read_int32, int32_t, double)
READ(read_int16, int16_t, double)
READ(read_int8, int8_t, double)
READ(read_uint64, uint64_t, double)
READ(read_uint32, uint32_t, double)
READ(read_uint16, uint16_t, double)
READ(read_uint8, uint8_t, double)
READ(widen_int32, int32_t, int64_t)
READ(widen_int16, int16_t, int64_t)
READ(widen_int8, int8_t, int64_t)
READ(widen_uint32, uint32_t, int64_t)
READ(widen_uint16, uint16_t, int64_t)
READ(widen_uint8, uint8_t, int64_t)

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

void
dpq_column_at(const dpq_column *column, size_t n, const int64_t *place, double *value)
{
    if (column->kind == DPQ_FLOAT64) {
        const double *given = column->value;

        for (size_t i = 0; i < n; i++) {
            value[i] = given[place[i]];
        }
        return;
    }
    for (size_t i = 0; i < n; i++) {
        (void)dpq_column_read(column, (size_t)place[i], 1, value + i);
    }
}

const int64_t *
dpq_column_integers(const dpq_column *column, size_t start, size_t n, int64_t *room)
{
    switch (column->kind) {
    case DPQ_INT32:
        widen_int32(n, (const int32_t *)column->value + start, room);
        break;
    case DPQ_INT16:
        widen_int16(n, (const int16_t *)column->value + start, room);
        break;
    case DPQ_INT8:
        widen_int8(n, (const int8_t *)column->value + start, room);
        break;
    case DPQ_UINT32:
        widen_uint32(n, (const uint32_t *)column->value + start, room);
        break;
    case DPQ_UINT16:
        widen_uint16(n, (const uint16_t *)column->value + start, room);
        break;
    case DPQ_UINT8:
        widen_uint8(n, (const uint8_t *)column->value + start, room);
        break;
    case DPQ_INT64:
    case DPQ_UINT64: /* and others that are not for this */
    case DPQ_FLOAT32:
    case DPQ_FLOAT64:
    case DPQ_KINDS:
        return (const int64_t *)column->value + start;
    }
    return room;
}
