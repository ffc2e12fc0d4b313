/* string_table.h - a set of different texts, and their alphabetical order.
 *
 *     at_string_table_add ... ──► at_string_table_sort ──► at_string_table_find: the rank of a text
 */
#ifndef AT_DATA_SET_STRING_TABLE_H
#define AT_DATA_SET_STRING_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct at_string_table {
    char     *text; /* one zero-terminated word after the other */
    size_t    text_used, text_room;
    size_t   *starts; /* (count) of each word in text, in the order they came; sorted: by rank */
    uint32_t *slots;  /* (slot_count) hash table of numbers + 1; 0: free */
    uint32_t  count, slot_count;
} at_string_table;

/* Adds a text unless it is there. False when there is no memory. A zeroed set is empty. */
bool at_string_table_add(at_string_table *words, const char *text);

/* Numbers the texts in order: byte by byte, or by value when all of them are whole numbers. False
 * when there is no memory. */
bool at_string_table_sort(at_string_table *words);

/* The number of the text: its rank after sorting. UINT32_MAX: not there. */
uint32_t at_string_table_find(const at_string_table *words, const char *text);

/* The text of that number; borrowed until the next call of add. */
const char *at_string_table_get(const at_string_table *words, uint32_t index);

/* Releases; accepts a zeroed set. */
void at_string_table_deinit(at_string_table *words);

#endif
