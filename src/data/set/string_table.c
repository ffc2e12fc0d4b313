#include "data/set/string_table.h"

#include "data/files/decimal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS_FIRST = 64, TEXT_FIRST = 1024 };

/* The slot of the string, or the free one where it belongs. */
static uint32_t find_slot(const at_string_table *table, const char *text)
{
    assert(table->slot_count > table->count);
    uint32_t mask = table->slot_count - 1, slot;
    slot = (uint32_t)at_string_hash(AT_STRING_HASH_START, text, text + strlen(text)) & mask;
    while (table->slots[slot] &&
           strcmp(at_string_table_get(table, table->slots[slot] - 1), text) != 0)
        slot = (slot + 1) & mask;
    return slot;
}

static void fill_slots(at_string_table *table)
{
    memset(table->slots, 0, table->slot_count * sizeof *table->slots);
    for (uint32_t i = 0; i < table->count; i++)
        table->slots[find_slot(table, at_string_table_get(table, i))] = i + 1;
}

/* Grows the hash table so that at most half of the slots are used. */
static bool grow_slots(at_string_table *table)
{
    if (2 * table->count < table->slot_count) return true;
    uint32_t  slot_count = table->slot_count ? 2 * table->slot_count : SLOTS_FIRST;
    uint32_t *slots = reallocarray(table->slots, slot_count, sizeof *slots);
    if (slots) table->slots = slots;
    size_t *starts = reallocarray(table->starts, slot_count, sizeof *starts);
    if (starts) table->starts = starts;
    if (!slots || !starts) return false;
    table->slot_count = slot_count;
    fill_slots(table);
    return true;
}

static bool grow_text(at_string_table *table, size_t size)
{
    size_t room = table->text_room ? table->text_room : TEXT_FIRST;
    while (room - table->text_used < size) room *= 2;
    if (room == table->text_room) return true;
    char *text = realloc(table->text, room);
    if (!text) return false;
    table->text = text;
    table->text_room = room;
    return true;
}

uint32_t at_string_table_add(at_string_table *table, const char *text)
{
    assert(table && text);
    size_t size = strlen(text) + 1;
    if (!grow_slots(table)) return UINT32_MAX;
    uint32_t slot = find_slot(table, text);
    if (table->slots[slot]) return table->slots[slot] - 1;
    if (!grow_text(table, size)) return UINT32_MAX;
    memcpy(table->text + table->text_used, text, size);
    table->starts[table->count++] = table->text_used;
    table->slots[slot] = table->count;
    table->text_used += size;
    return table->count - 1;
}

static bool is_integer(const char *text, int64_t *value)
{
    const char *end = at_decimal_int(text, value);
    return end && *end == '\0';
}

typedef struct entry {
    const char *text;
    int64_t     value;
    uint32_t    number;
    size_t      start;
} entry;

static int by_text(const void *a, const void *b)
{
    return strcmp(((const entry *)a)->text, ((const entry *)b)->text);
}

static int by_value(const void *a, const void *b)
{
    int64_t x = ((const entry *)a)->value, y = ((const entry *)b)->value;
    return x != y ? (x > y) - (x < y) : by_text(a, b);
}

bool at_string_table_sort(at_string_table *table, uint32_t *ranks)
{
    bool   integers = true;
    entry *list = table->count ? calloc(table->count, sizeof *list) : NULL;
    if (!list) return table->count == 0;
    for (uint32_t i = 0; i < table->count; i++) {
        list[i] =
            (entry){.text = at_string_table_get(table, i), .number = i, .start = table->starts[i]};
        integers = is_integer(list[i].text, &list[i].value) && integers;
    }
    qsort(list, table->count, sizeof *list, integers ? by_value : by_text);
    for (uint32_t i = 0; i < table->count; i++) {
        table->starts[i] = list[i].start;
        if (ranks) ranks[list[i].number] = i;
    }
    free(list);
    fill_slots(table);
    return true;
}

uint32_t at_string_table_find(const at_string_table *table, const char *text)
{
    assert(table && text);
    if (table->count == 0) return UINT32_MAX;
    return table->slots[find_slot(table, text)] - 1; /* a free slot is 0 */
}

const char *at_string_table_get(const at_string_table *table, uint32_t index)
{
    assert(index < table->count);
    return table->text + table->starts[index];
}

void at_string_table_deinit(at_string_table *table)
{
    assert(table);
    free(table->text);
    free(table->starts);
    free(table->slots);
    *table = (at_string_table){0};
}
