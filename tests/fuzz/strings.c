#include "strings.h"

#include "fuzz.h"

#define MOST_KEYS 40
#define MOST_ROWS 100
#define MOST_BYTES 70
#define MOST_BUFFERS 3

/* Often one of few short strings, that differ in little; of any bytes, in memory of their own. */
static dpq_strings_one
draw_string(fuzz_input *in)
{
    size_t size = (size_t)(fuzz_bit(in) ? fuzz_between(in, 0, 4) : fuzz_between(in, 0, MOST_BYTES));
    int64_t last = fuzz_between(in, 0, 7) ? 1 : 255;
    uint8_t *bytes = fuzz_room(size + (size == 0), 1);

    for (size_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)fuzz_between(in, 0, last);
    }
    return (dpq_strings_one){bytes, size, (uint32_t)(fuzz_between(in, 0, 7) ? 0 : 255)};
}

static void
drop(size_t n, dpq_strings_one *string)
{
    for (size_t i = 0; i < n; i++) {
        free((void *)(uintptr_t)string[i].bytes);
    }
    free(string);
}

/* The first key that a string is equal to, or -1. */
static int32_t
plain_place(size_t keys, const dpq_strings_one *key, const dpq_strings_one *string)
{
    for (size_t i = 0; i < keys && string->bytes != NULL; i++) {
        if (key[i].bytes != NULL && key[i].size == string->size && key[i].kind == string->kind &&
            memcmp(key[i].bytes, string->bytes, string->size) == 0) {
            return (int32_t)i;
        }
    }
    return DPQ_STRINGS_NONE;
}

/* An array of Arrow out of strings, of which some are missing, each cut in some way: what it then
 * holds is put into `string`, without memory of its own. */
static void
check_arrow(const dpq_strings_table *table, size_t keys, const dpq_strings_one *key,
            size_t n, const dpq_strings_one *given, fuzz_input *in)
{
    static const uint8_t nothing[1];
    dpq_strings_layout layout = fuzz_bit(in)   ? DPQ_STRINGS_INT32
                                : fuzz_bit(in) ? DPQ_STRINGS_INT64
                                               : DPQ_STRINGS_VIEWS;
    int views = layout == DPQ_STRINGS_VIEWS, wild = fuzz_between(in, 0, 7) == 0;
    size_t first = (size_t)fuzz_between(in, 0, 9), last = first + n, start = 0;
    size_t width = (size_t)layout, entries = last + !views;
    size_t size[MOST_BUFFERS] = {0}, buffers = views ? (size_t)fuzz_between(in, 0, 3) : 1;
    uint8_t *bytes[MOST_BUFFERS], *entry, *room = fuzz_room(entries * width + 1, 1);
    uint8_t *valid = fuzz_bit(in) ? fuzz_room((last + 7) / 8, 1) : NULL;
    dpq_strings_buffer buffer[MOST_BUFFERS];
    dpq_strings_one *string = fuzz_room(n, sizeof *string);
    int32_t *place = fuzz_room(n, sizeof *place);
    dpq_strings_arrow array = {layout, NULL, valid, first, buffers, buffer};

    entry = room + 1; /* unaligned, and up to the end */
    array.entry = entry;
    for (size_t b = 0; b < MOST_BUFFERS; b++) {
        bytes[b] = fuzz_room(n * MOST_BYTES, 1);
    }
    for (size_t i = 0; valid != NULL && i < (last + 7) / 8; i++) {
        valid[i] = (uint8_t)fuzz_bytes(in, 1);
    }
    for (size_t i = 0; i < n; i++) {
        size_t at = first + i, b = views && buffers ? i % buffers : 0;
        uint32_t number = (uint32_t)b, offset = (uint32_t)size[b];
        uint32_t length = (uint32_t)given[i].size;
        int inline_bytes = views && length <= 12;

        string[i] = given[i];
        string[i].kind = 0;
        if (!inline_bytes && buffers > 0 && given[i].size > 0) {
            memcpy(bytes[b] + size[b], given[i].bytes, given[i].size);
            size[b] += given[i].size;
        }
        if (views) {
            memcpy(entry + 16 * at, &length, 4);
            memcpy(entry + 16 * at + 8, &number, 4);
            memcpy(entry + 16 * at + 12, &offset, 4);
            if (inline_bytes && length > 0) {
                memcpy(entry + 16 * at + 4, given[i].bytes, length);
            }
            if (!inline_bytes && buffers == 0) {
                string[i].bytes = NULL;
            }
        }
        if (valid != NULL && !(valid[at / 8] >> at % 8 & 1)) {
            string[i].bytes = NULL;
        }
    }
    for (size_t i = 0; i <= n && !views; i++) {
        uint64_t offset = start;

        memcpy(entry + width * (first + i), &offset, width); /* low bytes first, here */
        start += i < n ? given[i].size : 0;
    }
    if (wild) { /* any entries: what they say is read where it is there */
        for (size_t i = 0; i < entries * width; i++) {
            entry[i] = fuzz_between(in, 0, 3) ? entry[i] : (uint8_t)fuzz_bytes(in, 1);
        }
    }
    for (size_t b = 0; b < MOST_BUFFERS; b++) { /* exactly as long */
        uint8_t *exact = fuzz_room(size[b], 1);

        if (size[b] > 0) {
            memcpy(exact, bytes[b], size[b]);
        }
        free(bytes[b]);
        bytes[b] = exact;
        buffer[b] = (dpq_strings_buffer){size[b] > 0 ? exact : NULL, size[b]};
    }
    dpq_strings_find_arrow(table, &array, n, place);
    for (size_t i = 0; i < n; i++) {
        size_t at = first + i;

        if (wild) {
            const uint8_t *here = entry + width * at;
            uint64_t from = 0, to = 0;
            uint32_t length, number, offset;

            string[i] = (dpq_strings_one){NULL, 0, 0};
            if (valid == NULL || (valid[at / 8] >> at % 8 & 1)) {
                if (views) {
                    memcpy(&length, here, 4);
                    memcpy(&number, here + 8, 4);
                    memcpy(&offset, here + 12, 4);
                    if (length <= 12) {
                        string[i] = (dpq_strings_one){here + 4, length, 0};
                    }
                    else if (number < buffers && (uint64_t)offset + length <= size[number]) {
                        string[i] = (dpq_strings_one){bytes[number] + offset, length, 0};
                    }
                }
                else {
                    memcpy(&from, here, width);
                    memcpy(&to, here + width, width);
                    if (from == to) {
                        string[i] = (dpq_strings_one){nothing, 0, 0};
                    }
                    else if (from < to && to <= size[0]) {
                        string[i] = (dpq_strings_one){bytes[0] + from, (size_t)(to - from), 0};
                    }
                }
            }
        }
        CHECK(place[i] == plain_place(keys, key, string + i));
    }
    for (size_t b = 0; b < MOST_BUFFERS; b++) {
        free(bytes[b]);
    }
    free(place);
    free(string);
    free(valid);
    free(room);
}

/* Strings cut to whole characters, filled up with zeros. */
static void
check_fixed(const dpq_strings_table *table, size_t keys, const dpq_strings_one *key, size_t n,
            const dpq_strings_one *given, fuzz_input *in)
{
    size_t width = (size_t)fuzz_between(in, 1, MOST_BYTES / 4);
    uint32_t *character = calloc(n * width, sizeof *character);
    int32_t *place = fuzz_room(n, sizeof *place);

    CHECK(character != NULL || n == 0);
    for (size_t i = 0; i < n; i++) {
        size_t whole = given[i].size / 4 < width ? given[i].size / 4 : width;

        if (whole > 0) {
            memcpy(character + i * width, given[i].bytes, 4 * whole);
        }
    }
    dpq_strings_find_fixed(table, n, width, character, place);
    for (size_t i = 0; i < n; i++) {
        dpq_strings_one string = {(const uint8_t *)(character + i * width), 0, 0};

        for (size_t j = 1; j <= width; j++) {
            string.size = character[i * width + j - 1] != 0 ? 4 * j : string.size;
        }
        CHECK(place[i] == plain_place(keys, key, &string));
    }
    free(place);
    free(character);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size, 1};
    size_t keys = fuzz_size(&in, MOST_KEYS), n = fuzz_size(&in, MOST_ROWS);
    size_t slots = dpq_strings_slots(keys), taken = 0;
    dpq_strings_one *key = fuzz_room(keys, sizeof *key), *string = fuzz_room(n, sizeof *string);
    dpq_strings_one *shown = fuzz_room(n, sizeof *shown);
    dpq_strings_slot *slot = fuzz_room(slots, sizeof *slot);
    int32_t *place = fuzz_room(n, sizeof *place);
    dpq_strings_table table = {slots, slot, key, {fuzz_bytes(&in, 8), fuzz_bytes(&in, 8)}};

    CHECK(slots >= 2 * keys && slots >= 2 && (slots & (slots - 1)) == 0);
    for (size_t i = 0; i < keys; i++) {
        key[i] = draw_string(&in);
        if (fuzz_between(&in, 0, 15) == 0) {
            free((void *)(uintptr_t)key[i].bytes);
            key[i].bytes = NULL;
        }
    }
    for (size_t i = 0; i < n; i++) {
        const dpq_strings_one *like = keys > 0 ? key + fuzz_between(&in, 0, (int64_t)keys - 1) : NULL;

        string[i] = draw_string(&in);
        if (like != NULL && like->bytes != NULL && fuzz_bit(&in)) { /* in a place of its own */
            uint8_t *copy = fuzz_room(like->size + (like->size == 0), 1);

            memcpy(copy, like->bytes, like->size);
            free((void *)(uintptr_t)string[i].bytes);
            string[i] = (dpq_strings_one){copy, like->size, like->kind};
        }
        shown[i] = string[i];
        if (fuzz_between(&in, 0, 15) == 0) {
            shown[i].bytes = NULL;
        }
    }
    dpq_strings_fill(keys, key, table.seed, slots, slot);
    for (size_t i = 0; i < slots; i++) {
        taken += slot[i].place >= 0;
        CHECK(slot[i].place < (int32_t)keys);
    }
    CHECK(taken <= keys);
    dpq_strings_find(&table, n, shown, place);
    for (size_t i = 0; i < n; i++) {
        CHECK(place[i] == plain_place(keys, key, shown + i));
    }
    check_arrow(&table, keys, key, n, string, &in);
    check_fixed(&table, keys, key, n, string, &in);
    free(place);
    free(slot);
    free(shown);
    drop(n, string);
    drop(keys, key);
    return 0;
}
