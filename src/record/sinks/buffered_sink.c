#include "record/sinks/buffered_sink.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    BUFFER_SIZE = 65536, /* small enough to stay in a core's second cache */
    ALIGNMENT = 16
};

static const at_ns keep_longest = 50000000;

typedef struct later {
    at_recorder    behind;
    at_ns          shown_at; /* time of the record that was shown last */
    size_t         used;
    unsigned char *buffer; /* entries, each a record and behind it what it points to */
} later;

/* How an entry begins; the parts behind it are aligned and in this order. */
typedef struct entry {
    size_t    size; /* of the whole entry */
    at_record record;
} entry;

static size_t rounded(size_t size)
{
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static size_t pieces_size(const at_record *record)
{
    bool is_step = record->action && record->action->kind == AT_ACT_APPLY;
    return is_step ? record->action->as.apply.count * sizeof(at_piece) : 0;
}

static size_t text_size(const at_record *record)
{
    return record->text ? strlen(record->text) + 1 : 0;
}

static size_t entry_size(const at_record *record)
{
    size_t size = rounded(sizeof(entry));
    if (record->event) size += rounded(sizeof *record->event);
    if (record->action) size += rounded(sizeof *record->action) + rounded(pieces_size(record));
    if (record->usage) size += rounded(sizeof *record->usage);
    return size + rounded(text_size(record));
}

/* Copies a part to *place, which moves on; returns the copy. */
static void *keep(unsigned char **place, const void *part, size_t size)
{
    assert(part || size == 0);
    void *copy = *place;
    if (size > 0) memcpy(copy, part, size);
    *place += rounded(size);
    return copy;
}

static void keep_action(unsigned char **place, const at_record *from, at_record *record)
{
    at_action *action = keep(place, from->action, sizeof *from->action);
    size_t     size = pieces_size(from);
    record->action = action;
    if (size > 0) action->as.apply.pieces = keep(place, from->action->as.apply.pieces, size);
}

static void keep_entry(unsigned char *place, size_t size, const at_record *from)
{
    unsigned char *begin = place;
    entry         *it = keep(&place, &(entry){.size = size, .record = *from}, sizeof *it);
    at_record     *record = &it->record;
    if (from->event) record->event = keep(&place, from->event, sizeof *from->event);
    if (from->action) keep_action(&place, from, record);
    if (from->usage) record->usage = keep(&place, from->usage, sizeof *from->usage);
    if (from->text) record->text = keep(&place, from->text, text_size(from));
    assert(place == begin + size);
}

/* Sink after sink, so that each has its own code and data at hand for all of them. */
static void show(later *self)
{
    assert(self->used <= BUFFER_SIZE);
    for (uint32_t i = 0; i < self->behind.count; i++) {
        const at_sink *sink = &self->behind.sink[i];
        for (size_t place = 0; place < self->used;) {
            const entry *it = (const entry *)(const void *)(self->buffer + place);
            sink->put(sink->self, &it->record);
            place += it->size;
        }
    }
    self->used = 0;
}

/* Nobody should wait for these: a save is only good when all before it is in the files. */
static bool is_urgent(const at_record *record)
{
    if (record->kind == AT_REC_TEXT) return true;
    if (record->kind != AT_REC_ACTION) return false;
    return record->action->kind == AT_ACT_SAVE || record->action->kind == AT_ACT_FINISH;
}

static void put(void *opaque, const at_record *record)
{
    later *self = opaque;
    size_t size = entry_size(record);
    if (size > BUFFER_SIZE - self->used) show(self);
    if (size > BUFFER_SIZE) { /* a step of a thousand workers */
        at_recorder_put(&self->behind, record);
        return;
    }
    keep_entry(self->buffer + self->used, size, record);
    self->used += size;
    bool is_old = record->at - self->shown_at >= keep_longest;
    if (!is_old && !is_urgent(record)) return;
    if (record->kind != AT_REC_TEXT) self->shown_at = record->at; /* a sentence may have any time */
    show(self);
}

static at_err close_sink(void *opaque, at_fail *fail)
{
    later *self = opaque;
    show(self);
    at_err err = at_recorder_close(&self->behind, fail);
    free(self->buffer);
    free(self);
    return err;
}

at_err at_sink_buffered(at_recorder *behind, at_sink *sink, at_fail *fail)
{
    assert(behind->count > 0);
    later *self = calloc(1, sizeof *self);
    if (self) self->buffer = aligned_alloc(ALIGNMENT, BUFFER_SIZE);
    if (!self || !self->buffer) {
        free(self);
        return at_fail_memory_for(fail, "for records");
    }
    self->behind = *behind;
    *behind = (at_recorder){0};
    *sink = (at_sink){.name = "later", .self = self, .put = put, .close = close_sink};
    return AT_OK;
}
