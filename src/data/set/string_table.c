#include "data/set/string_table.h"

#include "base/rng.h"
#include "data/files/decimal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS_FIRST = 64, TEXT_FIRST = 1024 };

static uint64_t hash(const char *text)
{
    uint64_t h = 14695981039346656037u; /* FNV-1a */
    for (; *text; text++) h = (h ^ (unsigned char)*text) * 1099511628211u;
    return at_rng_mix(h);
}

/* The slot where the text is, or where it would go. */
static uint32_t find_slot(const at_string_table *words, const char *text)
{
    assert(words->slot_count > words->count);
    uint32_t mask = words->slot_count - 1, slot = (uint32_t)hash(text) & mask;
    while (words->slots[slot] &&
           strcmp(at_string_table_get(words, words->slots[slot] - 1), text) != 0)
        slot = (slot + 1) & mask;
    return slot;
}

static void fill_slots(at_string_table *words)
{
    memset(words->slots, 0, words->slot_count * sizeof *words->slots);
    for (uint32_t i = 0; i < words->count; i++)
        words->slots[find_slot(words, at_string_table_get(words, i))] = i + 1;
}

/* At most half of the slots are taken. */
static bool make_slots(at_string_table *words)
{
    if (2 * words->count < words->slot_count) return true;
    uint32_t  slot_count = words->slot_count ? 2 * words->slot_count : SLOTS_FIRST;
    uint32_t *slots = reallocarray(words->slots, slot_count, sizeof *slots);
    if (slots) words->slots = slots;
    size_t *starts = reallocarray(words->starts, slot_count, sizeof *starts);
    if (starts) words->starts = starts;
    if (!slots || !starts) return false;
    words->slot_count = slot_count;
    fill_slots(words);
    return true;
}

static bool make_text(at_string_table *words, size_t size)
{
    size_t room = words->text_room ? words->text_room : TEXT_FIRST;
    while (room - words->text_used < size) room *= 2;
    if (room == words->text_room) return true;
    char *text = realloc(words->text, room);
    if (!text) return false;
    words->text = text;
    words->text_room = room;
    return true;
}

bool at_string_table_add(at_string_table *words, const char *text)
{
    assert(words && text);
    size_t size = strlen(text) + 1;
    if (!make_slots(words)) return false;
    uint32_t slot = find_slot(words, text);
    if (words->slots[slot]) return true;
    if (!make_text(words, size)) return false;
    memcpy(words->text + words->text_used, text, size);
    words->starts[words->count++] = words->text_used;
    words->slots[slot] = words->count;
    words->text_used += size;
    return true;
}

static bool is_whole(const char *text, int64_t *value)
{
    const char *end = at_decimal_int(text, value);
    return end && *end == '\0';
}

typedef struct entry {
    const char *text;
    int64_t     value;
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

bool at_string_table_sort(at_string_table *words)
{
    bool   whole = true;
    entry *list = words->count ? calloc(words->count, sizeof *list) : NULL;
    if (!list) return words->count == 0;
    for (uint32_t i = 0; i < words->count; i++) {
        list[i] = (entry){.text = at_string_table_get(words, i), .start = words->starts[i]};
        whole = is_whole(list[i].text, &list[i].value) && whole;
    }
    qsort(list, words->count, sizeof *list, whole ? by_value : by_text);
    for (uint32_t i = 0; i < words->count; i++) words->starts[i] = list[i].start;
    free(list);
    fill_slots(words);
    return true;
}

uint32_t at_string_table_find(const at_string_table *words, const char *text)
{
    assert(words && text);
    if (words->count == 0) return UINT32_MAX;
    return words->slots[find_slot(words, text)] - 1; /* a free slot is 0 */
}

const char *at_string_table_get(const at_string_table *words, uint32_t index)
{
    assert(index < words->count);
    return words->text + words->starts[index];
}

void at_string_table_deinit(at_string_table *words)
{
    assert(words);
    free(words->text);
    free(words->starts);
    free(words->slots);
    *words = (at_string_table){0};
}
