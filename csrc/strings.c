#include "strings.h"

#include <string.h>

#include "int128.h"
#include "vector.h"

#define BATCH 32    /* strings whose slots are fetched together */
#define SHORT 16    /* bytes of a string that is in its slot; a longer one is compared where it lies */
#define LARGE ((1 << 24) - 1) /* bytes of a string whose size is not in its slot */

static inline uint64_t
load64(const uint8_t *bytes)
{
    uint64_t word;

    memcpy(&word, bytes, sizeof word);
    return word;
}

static inline uint32_t
load32(const uint8_t *bytes)
{
    uint32_t word;

    memcpy(&word, bytes, sizeof word);
    return word;
}

/* The upper half of a product, exclusive or the lower one. */
static inline uint64_t
fold(uint64_t a, uint64_t b)
{
    dpq_u128 product = dpq_u128_product(a, b);

    return dpq_u128_high(product) ^ dpq_u128_low(product);
}

/* A string as it would be in its slot, and where the search for it begins. */
typedef struct {
    uint64_t word[2];
    uint32_t form;
    size_t start;
} sought;

static inline sought
sought_of(size_t slots, const uint64_t *seed, const dpq_strings_one *string)
{
    const uint8_t *bytes = string->bytes;
    size_t size = string->size;
    sought found = {{0, 0}, string->kind << 24 | (uint32_t)(size < LARGE ? size : LARGE), 0};
    uint64_t hash = seed[1] ^ found.form * UINT64_C(0x9E3779B97F4A7C15);

    if (size > SHORT) {
        for (size_t i = 0; i + SHORT < size; i += SHORT) {
            hash = fold(load64(bytes + i) ^ seed[0], load64(bytes + i + 8) ^ hash);
        }
        hash = fold(load64(bytes + size - 16) ^ seed[0], load64(bytes + size - 8) ^ hash);
        found.word[0] = hash;
        found.word[1] = (uint64_t)(uintptr_t)bytes;
    }
    else {
        /* Two loads that may overlap: with the size, they say all. */
        if (size >= 8) {
            found.word[0] = load64(bytes);
            found.word[1] = load64(bytes + size - 8);
        }
        else if (size >= 4) {
            found.word[0] = load32(bytes);
            found.word[1] = load32(bytes + size - 4);
        }
        else if (size > 0) {
            found.word[0] = (uint64_t)bytes[0] << 16 | (uint64_t)bytes[size / 2] << 8;
            found.word[0] |= bytes[size - 1];
        }
        hash = fold(found.word[0] ^ seed[0], found.word[1] ^ hash);
    }
    found.start = (size_t)(hash ^ hash >> 32) & (slots - 1);
    return found;
}

/* Where a byte of the string in a slot is, if that is no short one. */
static inline const uint8_t *
byte_in(const dpq_strings_slot *slot, size_t i)
{
    return (const uint8_t *)(uintptr_t)(slot->word[1] + i);
}

/* The slot of a string, or the free one where it would be. */
static inline const dpq_strings_slot *
slot_of(size_t slots, const dpq_strings_slot *slot, const dpq_strings_one *key,
        const dpq_strings_one *string, const sought *like)
{
    for (size_t at = like->start;; at = (at + 1) & (slots - 1)) {
        const dpq_strings_slot *here = slot + at;

        if (here->place < 0) {
            return here;
        }
        if (here->word[0] == like->word[0] && here->form == like->form &&
            (string->size <= SHORT ? here->word[1] == like->word[1]
                                   : (string->size < LARGE ||
                                      string->size == key[here->place].size) &&
                                         memcmp(byte_in(here, 0), string->bytes, string->size) == 0)) {
            return here;
        }
    }
}

size_t
dpq_strings_slots(size_t n)
{
    size_t slots = 2;

    while (slots / 2 < n) {
        slots *= 2;
    }
    return slots;
}

void
dpq_strings_fill(size_t n, const dpq_strings_one *key, const uint64_t *seed, size_t slots,
                 dpq_strings_slot *slot)
{
    const dpq_strings_slot empty = {{0, 0}, 0, DPQ_STRINGS_NONE};

    for (size_t i = 0; i < slots; i++) {
        slot[i] = empty;
    }
    for (size_t i = 0; i < n; i++) {
        if (key[i].bytes != NULL) {
            sought like = sought_of(slots, seed, key + i);
            size_t at = (size_t)(slot_of(slots, slot, key, key + i, &like) - slot);

            if (slot[at].place < 0) {
                slot[at] = (dpq_strings_slot){
                    {like.word[0], like.word[1]}, like.form, (int32_t)i};
            }
        }
    }
}

/* Find a batch: all slots are asked for before the first is read, so that waiting for one is waiting
 * for all; then the bytes of all long keys. */
static inline void
find_batch(const dpq_strings_table *table, size_t n, const dpq_strings_one *string, int32_t *place)
{
    sought like[BATCH];
    size_t longest = 0;

    for (size_t i = 0; i < n; i++) {
        if (string[i].bytes != NULL) {
            like[i] = sought_of(table->slots, table->seed, string + i);
            longest = string[i].size > longest ? string[i].size : longest;
            DPQ_PREFETCH(table->slot + like[i].start);
        }
    }
    for (size_t i = 0; i < n && longest > SHORT; i++) {
        if (string[i].bytes != NULL && string[i].size > SHORT) {
            const dpq_strings_slot *first = table->slot + like[i].start;

            if (first->word[0] == like[i].word[0]) { /* else any word may be in the place of one */
                DPQ_PREFETCH(byte_in(first, 0));
                DPQ_PREFETCH(byte_in(first, string[i].size - 1));
            }
        }
    }
    for (size_t i = 0; i < n; i++) {
        place[i] = string[i].bytes == NULL
                       ? DPQ_STRINGS_NONE
                       : slot_of(table->slots, table->slot, table->key, string + i, like + i)->place;
    }
}

static inline size_t
batch_from(size_t i, size_t n)
{
    return n - i < BATCH ? n - i : BATCH;
}

void
dpq_strings_find(const dpq_strings_table *table, size_t n, const dpq_strings_one *string,
                 int32_t *place)
{
    for (size_t i = 0; i < n; i += BATCH) {
        find_batch(table, batch_from(i, n), string + i, place + i);
    }
}

/* `size` bytes of a buffer from `start` on; no string where they are not there. */
static inline dpq_strings_one
inside(const dpq_strings_buffer *buffer, uint64_t start, uint64_t size)
{
    dpq_strings_one string = {NULL, 0, 0};

    if (start <= buffer->size && size <= buffer->size - start) {
        string.bytes = buffer->bytes + start;
        string.size = (size_t)size;
    }
    return string;
}

/* Negative offsets and sizes are too large when they are read as unsigned. */
static inline dpq_strings_one
string_at(const dpq_strings_arrow *array, dpq_strings_layout layout, size_t i)
{
    static const uint8_t nothing[1];
    const uint8_t *entry = array->entry + i * (size_t)layout;
    uint64_t start, stop;
    dpq_strings_one string = {NULL, 0, 0};

    if (array->valid != NULL && (array->valid[i / 8] >> i % 8 & 1) == 0) {
        return string;
    }
    if (layout == DPQ_STRINGS_VIEWS) {
        uint32_t size = load32(entry), buffer = load32(entry + 8);

        if (size <= 12) {
            string.bytes = entry + 4;
            string.size = size;
        }
        else if (buffer < array->buffers) {
            string = inside(array->buffer + buffer, load32(entry + 12), size);
        }
        return string;
    }
    start = layout == DPQ_STRINGS_INT64 ? load64(entry) : load32(entry);
    stop = layout == DPQ_STRINGS_INT64 ? load64(entry + 8) : load32(entry + 4);
    if (start == stop) { /* there may be no bytes at all */
        string.bytes = nothing;
        return string;
    }
    return inside(array->buffer, start, stop - start);
}

static inline void
find_laid_out(const dpq_strings_table *table, const dpq_strings_arrow *array,
              dpq_strings_layout layout, size_t n, int32_t *place)
{
    dpq_strings_one string[BATCH];

    for (size_t i = 0; i < n; i += BATCH) {
        size_t batch = batch_from(i, n);

        for (size_t k = 0; k < batch; k++) {
            string[k] = string_at(array, layout, array->first + i + k);
        }
        find_batch(table, batch, string, place + i);
    }
}

void
dpq_strings_find_arrow(const dpq_strings_table *table, const dpq_strings_arrow *array, size_t n,
                       int32_t *place)
{
    switch (array->layout) { /* each with a loop of its own */
    case DPQ_STRINGS_INT32:
        find_laid_out(table, array, DPQ_STRINGS_INT32, n, place);
        break;
    case DPQ_STRINGS_INT64:
        find_laid_out(table, array, DPQ_STRINGS_INT64, n, place);
        break;
    case DPQ_STRINGS_VIEWS:
        find_laid_out(table, array, DPQ_STRINGS_VIEWS, n, place);
        break;
    }
}

void
dpq_strings_find_fixed(const dpq_strings_table *table, size_t n, size_t width,
                       const uint32_t *character, int32_t *place)
{
    dpq_strings_one string[BATCH];

    for (size_t i = 0; i < n; i += BATCH) {
        size_t batch = batch_from(i, n);

        for (size_t k = 0; k < batch; k++) {
            const uint32_t *first = character + (i + k) * width;
            size_t length = width;

            while (length > 0 && first[length - 1] == 0) {
                length--;
            }
            string[k] = (dpq_strings_one){(const uint8_t *)first, 4 * length, 0};
        }
        find_batch(table, batch, string, place + i);
    }
}
