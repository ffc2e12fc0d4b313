#include "data/files/lines.h"

#include "base/machine.h"

#include <assert.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PARTS_MAX = 16,
    PART_SIZE = 4 << 20,      /* large enough to pay for a thread, small enough for a cache */
    PART_SIZE_MIN = 64 << 10, /* less than this is not worth a thread */
    LINE_SIZE_MAX = 1 << 28,  /* LIMIT: a line is held in memory as a whole */
};

bool at_complain(at_complaint *complaint, const char *at, const char *hint, const char *format, ...)
{
    assert(complaint && complaint->line && at >= complaint->line);
    va_list arguments;
    complaint->at = at;
    complaint->hint = hint;
    va_start(arguments, format);
    vsnprintf(complaint->text, sizeof complaint->text, format, arguments);
    va_end(arguments);
    return false;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

typedef struct reader {
    at_source             *source;
    const at_lines_parser *parser;
    at_sparse_builders    *builders;
    char                  *buffer;
    size_t                 size, used; /* of the buffer */
    uint64_t               lines;      /* before the buffer */
    uint32_t               cores;
    bool                   ended;
} reader;

static at_err no_memory(const reader *r, at_fail *fail)
{
    return at_fail_memory_for(fail, "to read %s", at_source_path(r->source));
}

/* Twice the buffer, for a line that is longer than all of it. */
static at_err grow(reader *r, at_fail *fail)
{
    if (r->size >= LINE_SIZE_MAX)
        return at_fail_set(fail, AT_ERR_FORMAT, "is it a text file with one row a line?",
                           "%s: line %llu is longer than %d bytes", at_source_path(r->source),
                           (unsigned long long)r->lines + 1, LINE_SIZE_MAX);
    char *more = realloc(r->buffer, 2 * r->size);
    if (!more) return no_memory(r, fail);
    r->buffer = more;
    r->size *= 2;
    return AT_OK;
}

/* Fills the buffer; the last line of the file gets a line feed if it has none. */
static at_err refill(reader *r, at_fail *fail)
{
    assert(r->used < r->size && !r->ended);
    size_t wanted = r->size - r->used - 1, got;
    AT_TRY(at_source_read(r->source, r->buffer + r->used, wanted, &got, fail));
    r->used += got;
    r->ended = got < wanted;
    if (r->ended && r->used > 0 && r->buffer[r->used - 1] != '\n') r->buffer[r->used++] = '\n';
    return AT_OK;
}

/* Bytes up to and with the last line feed. */
static size_t whole_lines(const reader *r)
{
    const char *last = r->used ? memrchr(r->buffer, '\n', r->used) : NULL;
    return last ? (size_t)(last - r->buffer) + 1 : 0;
}

/* ---- parts ----------------------------------------------------------------------------------- */

typedef struct part {
    const at_lines_parser *parser;
    const char            *begin, *end;
    at_sparse_builder     *builder;
    at_complaint           complaint;
    bool                   fine, running;
    pthread_t              thread;
} part;

static void *parse_part(void *self)
{
    part *p = self;
    p->fine = p->parser->parse(p->parser->self, p->begin, p->end, p->builder, &p->complaint);
    if (p->fine) at_sparse_builder_trim(p->builder);
    return NULL;
}

/* Cuts whole lines into at most `parts` parts of about the same size; returns how many. */
static size_t cut(const reader *r, size_t size, size_t parts, part *list)
{
    assert(size > 0 && parts > 0);
    const char *begin = r->buffer, *end = r->buffer + size;
    size_t      count = 0;
    for (size_t i = 1; i <= parts && begin < end; i++) {
        const char *goal = r->buffer + size / parts * i;
        if (i == parts || goal < begin) goal = begin;
        const char *stop =
            i == parts ? end : (const char *)memchr(goal, '\n', (size_t)(end - goal)) + 1;
        list[count++] = (part){.parser = r->parser, .begin = begin, .end = stop};
        begin = stop;
    }
    assert(begin == end);
    return count;
}

static at_err give_piles(const reader *r, part *list, size_t count, at_fail *fail)
{
    size_t             longest = 0;
    at_sparse_builder *builder;
    for (size_t i = 0; i < count; i++) {
        size_t size = (size_t)(list[i].end - list[i].begin);
        if (size > longest) longest = size;
    }
    AT_TRY(at_sparse_builders_add(r->builders, count, longest / r->parser->row_size_min + 1,
                                  longest / r->parser->number_size_min + 1, &builder, fail));
    for (size_t i = 0; i < count; i++) list[i].builder = builder + i;
    return AT_OK;
}

/* The last part is parsed here; a thread that cannot be had is done without. */
static void parse_all(part *list, size_t count)
{
    assert(count > 0);
    for (size_t i = 0; i + 1 < count; i++)
        list[i].running = pthread_create(&list[i].thread, NULL, parse_part, &list[i]) == 0;
    for (size_t i = 0; i < count; i++)
        if (!list[i].running) parse_part(&list[i]);
    for (size_t i = 0; i < count; i++)
        if (list[i].running) pthread_join(list[i].thread, NULL);
}

static at_err explain(const reader *r, const part *p, at_fail *fail)
{
    const at_complaint *c = &p->complaint;
    assert(c->at >= c->line && c->text[0]);
    return at_fail_set(fail, AT_ERR_FORMAT, c->hint, "%s: line %llu, column %llu: %s",
                       at_source_path(r->source),
                       (unsigned long long)(r->lines + p->builder->lines + 1),
                       (unsigned long long)(c->at - c->line + 1), c->text);
}

/* Parses `size` bytes of whole lines; the first wrong line is told whoever found it. */
static at_err parse_block(reader *r, size_t size, at_fail *fail)
{
    part   list[PARTS_MAX];
    size_t parts = size / PART_SIZE_MIN + 1;
    if (parts > r->cores) parts = r->cores;
    size_t count = cut(r, size, parts, list);
    AT_TRY(give_piles(r, list, count, fail));
    parse_all(list, count);
    for (size_t i = 0; i < count; i++) {
        if (!list[i].fine) return explain(r, &list[i], fail);
        r->lines += list[i].builder->lines;
    }
    return AT_OK;
}

static at_err read_blocks(reader *r, const at_loading *loading, at_fail *fail)
{
    while (!r->ended) {
        AT_TRY(refill(r, fail));
        size_t size = whole_lines(r);
        if (size == 0 && !r->ended) AT_TRY(grow(r, fail));
        if (size > 0) AT_TRY(parse_block(r, size, fail));
        r->used -= size;
        memmove(r->buffer, r->buffer + size, r->used);
        at_loading_tell(loading, at_source_done(r->source), at_source_file_size(r->source));
    }
    assert(r->used == 0);
    return AT_OK;
}

at_err at_lines_read(at_source *source, const at_lines_parser *parser, const at_loading *loading,
                     at_sparse_builders *builders, at_fail *fail)
{
    assert(source && parser && builders);
    assert(parser->row_size_min > 0 && parser->number_size_min > 0);
    reader r = {
        .source = source, .parser = parser, .builders = builders, .cores = at_machine_cores()};
    if (r.cores > PARTS_MAX) r.cores = PARTS_MAX;
    r.size = (size_t)PART_SIZE * r.cores;
    uint64_t needed = at_source_size_max(source); /* and a line feed, and a byte that stays free */
    if (needed < r.size - 2) r.size = (size_t)needed + 2;
    r.buffer = malloc(r.size);
    if (!r.buffer) return no_memory(&r, fail);
    at_err err = read_blocks(&r, loading, fail);
    free(r.buffer);
    return err;
}

static at_err read_file(const char *path, const at_lines_parser *parser, const at_loading *loading,
                        at_sparse_builders *builders, at_fail *fail)
{
    at_source *source;
    AT_TRY(at_source_open(path, &source, fail));
    at_err err = at_lines_read(source, parser, loading, builders, fail);
    at_source_close(source);
    return err;
}

at_err at_lines_load(at_dataset *set, const at_files *files, const at_lines_parser *parser,
                     const at_sparse_builders_end *end, at_fail *fail)
{
    assert(files->count > 0);
    at_sparse_builders builders = {0};
    at_err             err = AT_OK;
    for (size_t i = 0; !err && i < files->count; i++)
        err = read_file(files->path[i], parser, set->loading, &builders, fail);
    if (!err) err = at_sparse_builders_finish(&builders, set, end, fail);
    at_sparse_builders_deinit(&builders);
    return err;
}

size_t at_lines_peek(const char *path, char *bytes, size_t size)
{
    assert(path && size > 1);
    at_source *source;
    size_t     got = 0;
    bytes[0] = '\0';
    if (at_source_open(path, &source, NULL)) return 0;
    /* Damage further on is told by whoever reads all of it. */
    (void)at_source_read(source, bytes, size - 1, &got, NULL);
    at_source_close(source);
    bytes[got] = '\0';
    return got;
}
