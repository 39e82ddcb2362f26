/* Strings found among a set of others: the place of each, by its bytes. */
#ifndef DPQ_STRINGS_H
#define DPQ_STRINGS_H

#include <stddef.h>
#include <stdint.h>

/* No string, or none of the set. */
#define DPQ_STRINGS_NONE (-1)

/* A string where it lies. */
typedef struct {
    const uint8_t *bytes; /* IN, length `size`, of any alignment; NULL for no string */
    size_t size;
    uint32_t kind; /* below 2^8: strings of two kinds differ, whatever their bytes */
} dpq_strings_one;

/* One entry of a table. */
typedef struct {
    uint64_t word[2]; /* all of a string of up to 16 bytes; of a longer one hash and address */
    uint32_t form;    /* its kind and size */
    int32_t place;    /* DPQ_STRINGS_NONE for a free slot */
} dpq_strings_slot;

/* The strings of a set in a table: the slots from a string's hash on to the first free one. */
typedef struct {
    size_t slots;                 /* as from dpq_strings_slots */
    const dpq_strings_slot *slot; /* IN, length `slots`, as from dpq_strings_fill */
    const dpq_strings_one *key;   /* IN, the strings by place, where they were then */
    uint64_t seed[2];             /* of the hash; see dpq_strings_fill */
} dpq_strings_table;

/* Number of slots for n strings: a power of two, of which at most half will be taken. */
size_t
dpq_strings_slots(size_t n);

/* Put n strings into a table.
 *
 *   n            strings, fewer than 2^31
 *   key          IN, length n; those without bytes are left out; of equal ones the first is found
 *   seed         IN, any two words. Who knows them can make strings of one hash. Only strings of
 *                the set make a search longer, so that those which are looked up need not be
 *                trusted; words that nobody knows are for sets that others had a hand in.
 *   slots        as from dpq_strings_slots(n)
 *   slot         OUT, length `slots`
 *
 * Cost      O(n) expected, no allocation, reentrant.
 */
void
dpq_strings_fill(size_t n, const dpq_strings_one *key, const uint64_t *seed, size_t slots,
                 dpq_strings_slot *slot);

/* Find strings.
 *
 *   n            strings
 *   string       IN, length n
 *   place        OUT, length n: which key each is, DPQ_STRINGS_NONE for none
 *
 * Cost      O(n + their bytes) expected, no allocation, reentrant.
 */
void
dpq_strings_find(const dpq_strings_table *table, size_t n, const dpq_strings_one *string,
                 int32_t *place);

/* How strings of Arrow are laid out; the number is the bytes of each entry of the layout. */
typedef enum {
    DPQ_STRINGS_INT32 = 4, /* offsets into buffer 0, one more than strings */
    DPQ_STRINGS_INT64 = 8,
    DPQ_STRINGS_VIEWS = 16 /* sizes with the bytes, or with where these are in which buffer */
} dpq_strings_layout;

typedef struct {
    const uint8_t *bytes; /* IN, length `size` */
    size_t size;
} dpq_strings_buffer;

/* An array of strings of Arrow, by its buffers, of any alignment. */
typedef struct {
    dpq_strings_layout layout;
    const uint8_t *entry;             /* IN, offsets or views */
    const uint8_t *valid;             /* IN, a bit for each string, lowest first; NULL for all 1 */
    size_t first;                     /* number of the first string */
    size_t buffers;                   /* at least 1, but for views */
    const dpq_strings_buffer *buffer; /* IN, length `buffers` */
} dpq_strings_arrow;

/* Find the strings `first`, ..., `first` + n - 1 of an array of Arrow, by bytes of kind 0.
 *
 *   array        IN, entries and bits for `first` + n strings; what reaches outside of the buffers
 *                is no string
 *   place        OUT, length n: which key each is, DPQ_STRINGS_NONE for none
 *
 * Cost      as dpq_strings_find.
 */
void
dpq_strings_find_arrow(const dpq_strings_table *table, const dpq_strings_arrow *array, size_t n,
                       int32_t *place);

/* Find strings of one length that are filled up with zeros, by bytes of kind 0.
 *
 *   n            strings
 *   width        characters of each, of four bytes
 *   character    IN, length n * width; zeros at the end of a string are no part of it
 *   place        OUT, length n: which key each is, DPQ_STRINGS_NONE for none
 *
 * Cost      as dpq_strings_find.
 */
void
dpq_strings_find_fixed(const dpq_strings_table *table, size_t n, size_t width,
                       const uint32_t *character, int32_t *place);

#endif
