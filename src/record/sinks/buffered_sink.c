#include "record/sinks/buffered_sink.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "record/log/append_file.h"

enum {
    BUFFER_SIZE = 65536, /* small enough for the L2 cache */
    ALIGNMENT = 16
};

static const at_ns age_max = 50000000;

typedef struct buffered {
    at_recorder    inner, *outer;
    at_thinner    *thinner;      /* NULL: every record is kept */
    at_ns          passed_at;    /* time of the last record that was passed on */
    bool           has_complete; /* a sink that gets every record */
    size_t         used;
    unsigned char *buffer; /* entries: a record followed by what it points to */
} buffered;

/* The start of an entry; aligned copies of event, action, usage, link and text follow. */
typedef struct entry {
    size_t    size; /* of the whole entry */
    bool      kept; /* goes to all sinks, not only to complete ones */
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
    if (record->link) size += rounded(sizeof *record->link);
    return size + rounded(text_size(record));
}

/* Copies a part to *place and advances it; returns the copy. */
static void *copy_part(unsigned char **place, const void *part, size_t size)
{
    assert(part || size == 0);
    void *copy = *place;
    if (size > 0) memcpy(copy, part, size);
    *place += rounded(size);
    return copy;
}

static void copy_action(unsigned char **place, const at_record *from, at_record *record)
{
    at_action *action = copy_part(place, from->action, sizeof *from->action);
    size_t     size = pieces_size(from);
    record->action = action;
    if (size > 0) action->as.apply.pieces = copy_part(place, from->action->as.apply.pieces, size);
}

static void copy_entry(unsigned char *place, size_t size, const at_record *from, bool kept)
{
    unsigned char *begin = place;
    entry          head = {.size = size, .kept = kept, .record = *from};
    entry         *it = copy_part(&place, &head, sizeof *it);
    at_record     *record = &it->record;
    if (from->event) record->event = copy_part(&place, from->event, sizeof *from->event);
    if (from->action) copy_action(&place, from, record);
    if (from->usage) record->usage = copy_part(&place, from->usage, sizeof *from->usage);
    if (from->link) record->link = copy_part(&place, from->link, sizeof *from->link);
    if (from->text) record->text = copy_part(&place, from->text, text_size(from));
    assert(place == begin + size);
}

/* All records to one sink, then to the next, so that the caches serve one sink at a time. */
static void pass_on(buffered *self)
{
    assert(self->used <= BUFFER_SIZE);
    for (uint32_t i = 0; i < self->inner.count; i++) {
        const at_sink *sink = &self->inner.sink[i];
        for (size_t place = 0; place < self->used;) {
            const entry *it = (const entry *)(const void *)(self->buffer + place);
            if (it->kept || sink->complete) sink->put(sink->self, &it->record);
            place += it->size;
        }
    }
    self->used = 0;
    const char *trouble = self->outer ? at_append_file_trouble() : NULL;
    if (trouble) at_recorder_put(self->outer, &(at_record){.kind = AT_REC_TEXT, .text = trouble});
}

/* Not to be delayed. A checkpoint needs everything before it in the files. */
static bool is_urgent(const at_record *record)
{
    if (record->kind == AT_REC_TEXT) return true;
    if (record->kind != AT_REC_ACTION) return false;
    return record->action->kind == AT_ACT_SAVE || record->action->kind == AT_ACT_FINISH;
}

/* A step with very many gradients, or totals of very many workers. */
static void pass_one(const buffered *self, const at_record *record, bool kept)
{
    assert(self->used == 0);
    for (uint32_t i = 0; i < self->inner.count; i++) {
        const at_sink *sink = &self->inner.sink[i];
        if (kept || sink->complete) sink->put(sink->self, record);
    }
}

static void take(void *opaque, const at_record *record, bool kept)
{
    buffered *self = opaque;
    if (!kept && !self->has_complete) return;
    size_t size = entry_size(record);
    if (size > BUFFER_SIZE - self->used) pass_on(self);
    if (size > BUFFER_SIZE) {
        pass_one(self, record, kept);
        return;
    }
    copy_entry(self->buffer + self->used, size, record, kept);
    self->used += size;
    bool is_old = record->at - self->passed_at >= age_max;
    if (!is_old && !is_urgent(record)) return;
    if (record->kind != AT_REC_TEXT) self->passed_at = record->at; /* a text may have any time */
    pass_on(self);
}

static void put(void *opaque, const at_record *record)
{
    buffered *self = opaque;
    if (!self->thinner) {
        take(self, record, true);
        return;
    }
    at_thinner_put(self->thinner, record, take, self);
    const char *note = self->outer ? at_thinner_note(self->thinner) : NULL;
    if (note)
        at_recorder_put(self->outer,
                        &(at_record){.kind = AT_REC_TEXT, .at = record->at, .text = note});
}

static at_err close_sink(void *opaque, at_fail *fail)
{
    buffered *self = opaque;
    self->outer = NULL; /* it is being closed, too; the failure is reported by close */
    pass_on(self);
    at_err err = at_recorder_close(&self->inner, fail);
    at_thinner_free(self->thinner);
    free(self->buffer);
    free(self);
    return err;
}

at_err at_sink_buffered(at_recorder *inner, at_recorder *outer, at_thinner *thinner, at_sink *sink,
                        at_fail *fail)
{
    assert(inner->count > 0);
    buffered *self = calloc(1, sizeof *self);
    if (self) self->buffer = aligned_alloc(ALIGNMENT, BUFFER_SIZE);
    if (!self || !self->buffer) {
        free(self);
        return at_fail_memory_for(fail, "for records");
    }
    self->inner = *inner;
    self->outer = outer;
    self->thinner = thinner;
    for (uint32_t i = 0; i < inner->count; i++)
        self->has_complete = self->has_complete || inner->sink[i].complete;
    *inner = (at_recorder){0};
    *sink = (at_sink){.name = "buffered", .self = self, .put = put, .close = close_sink};
    return AT_OK;
}
