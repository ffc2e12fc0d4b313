/* string_table.h - a set of distinct strings, each with a number; sorted, the number is its rank.
 *
 *     at_string_table_add ... ──► at_string_table_sort ──► at_string_table_find: rank of a string
 */
#ifndef AT_DATA_SET_STRING_TABLE_H
#define AT_DATA_SET_STRING_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"

/* Parameters of FNV-1a. */
#define AT_STRING_HASH_START  14695981039346656037u
#define AT_STRING_HASH_FACTOR 1099511628211u

/* FNV-1a of the bytes from `text` to `end`, mixed because its low bits are weak. */
static inline uint64_t at_string_hash(uint64_t start, const char *text, const char *end)
{
    for (; text < end; text++) start = (start ^ (unsigned char)*text) * AT_STRING_HASH_FACTOR;
    return at_rng_mix(start);
}

typedef struct at_string_table {
    char     *text; /* zero-terminated strings, one after the other */
    size_t    text_used, text_room;
    size_t   *starts; /* (count) of each string in text, in insertion order; sorted: by rank */
    uint32_t *slots;  /* (slot_count) hash table of numbers + 1; 0: free */
    uint32_t  count, slot_count;
} at_string_table;

/* Adds a string unless it is present. Returns its number, or UINT32_MAX when memory runs out. A
 * zeroed table is empty. */
uint32_t at_string_table_add(at_string_table *table, const char *text);

/* Numbers the strings in order: byte by byte, or by value when all of them are integers. `ranks`
 * (count, or NULL) <- the new number of each. False when memory runs out. */
bool at_string_table_sort(at_string_table *table, uint32_t *ranks);

/* The number of the string: its rank after sorting. UINT32_MAX: not present. */
uint32_t at_string_table_find(const at_string_table *table, const char *text);

/* The string with that number; borrowed until the next call of add. */
const char *at_string_table_get(const at_string_table *table, uint32_t index);

/* Releases; accepts a zeroed table. */
void at_string_table_deinit(at_string_table *table);

#endif
