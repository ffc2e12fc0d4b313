#include "data/files/lines.h"

#include "base/buffer.h"
#include "base/machine.h"

#include <assert.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHUNKS_MAX = 16,
    CHUNK_SIZE = AT_BUFFER(4 << 20, 256), /* worth a thread, and small enough for a cache */
    CHUNK_SIZE_MIN = 64 << 10,            /* below this a thread does not pay off */
    LINE_SIZE_MAX = 1 << 28,              /* LIMIT: a whole line is held in memory */
};

bool at_parse_fail(at_parse_error *error, const char *at, const char *hint, const char *format, ...)
{
    assert(error && error->line && at >= error->line);
    va_list arguments;
    error->at = at;
    error->hint = hint;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
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

/* Doubles the buffer, for a line that is longer than it. */
static at_err grow(reader *r, at_fail *fail)
{
    if (r->size >= LINE_SIZE_MAX)
        return at_fail_set(fail, AT_ERR_FORMAT,
                           "check that it is a text file with one row per line",
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

/* Bytes up to and including the last line feed. */
static size_t whole_lines(const reader *r)
{
    const char *last = r->used ? memrchr(r->buffer, '\n', r->used) : NULL;
    return last ? (size_t)(last - r->buffer) + 1 : 0;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

typedef struct chunk {
    const at_lines_parser *parser;
    const char            *begin, *end;
    at_sparse_builder     *builder;
    at_parse_error         error;
    bool                   valid, running;
    pthread_t              thread;
} chunk;

static void *parse_chunk(void *self)
{
    chunk *c = self;
    c->valid = c->parser->parse(c->parser->self, c->begin, c->end, c->builder, &c->error);
    if (c->valid) at_sparse_builder_trim(c->builder);
    return NULL;
}

/* Cuts whole lines into at most `chunks` chunks of similar size; returns how many. */
static size_t cut(const reader *r, size_t size, size_t chunks, chunk *list)
{
    assert(size > 0 && chunks > 0);
    const char *begin = r->buffer, *end = r->buffer + size;
    size_t      count = 0;
    for (size_t i = 1; i <= chunks && begin < end; i++) {
        const char *goal = r->buffer + size / chunks * i;
        if (i == chunks || goal < begin) goal = begin;
        const char *stop =
            i == chunks ? end : (const char *)memchr(goal, '\n', (size_t)(end - goal)) + 1;
        list[count++] = (chunk){.parser = r->parser, .begin = begin, .end = stop};
        begin = stop;
    }
    assert(begin == end);
    return count;
}

static at_err add_builders(const reader *r, chunk *list, size_t count, at_fail *fail)
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

/* The last chunk, and any whose thread cannot be created, is parsed by this thread. */
static void parse_all(chunk *list, size_t count)
{
    assert(count > 0);
    for (size_t i = 0; i + 1 < count; i++)
        list[i].running = pthread_create(&list[i].thread, NULL, parse_chunk, &list[i]) == 0;
    for (size_t i = 0; i < count; i++)
        if (!list[i].running) parse_chunk(&list[i]);
    for (size_t i = 0; i < count; i++)
        if (list[i].running) pthread_join(list[i].thread, NULL);
}

static at_err explain(const reader *r, const chunk *p, at_fail *fail)
{
    const at_parse_error *c = &p->error;
    assert(c->at >= c->line && c->text[0]);
    return at_fail_set(fail, AT_ERR_FORMAT, c->hint, "%s: line %llu, column %llu: %s",
                       at_source_path(r->source),
                       (unsigned long long)(r->lines + p->builder->lines + 1),
                       (unsigned long long)(c->at - c->line + 1), c->text);
}

/* Parses `size` bytes of whole lines; reports the first invalid line, whichever thread found it. */
static at_err parse_block(reader *r, size_t size, at_fail *fail)
{
    chunk  list[CHUNKS_MAX];
    size_t chunks = size / CHUNK_SIZE_MIN + 1;
    if (chunks > r->cores) chunks = r->cores;
    size_t count = cut(r, size, chunks, list);
    AT_TRY(add_builders(r, list, count, fail));
    parse_all(list, count);
    for (size_t i = 0; i < count; i++) {
        if (!list[i].valid) return explain(r, &list[i], fail);
        r->lines += list[i].builder->lines;
    }
    return AT_OK;
}

static at_err read_blocks(reader *r, const at_load_progress *progress, at_fail *fail)
{
    while (!r->ended) {
        AT_TRY(refill(r, fail));
        size_t size = whole_lines(r);
        if (size == 0 && !r->ended) AT_TRY(grow(r, fail));
        if (size > 0) AT_TRY(parse_block(r, size, fail));
        r->used -= size;
        memmove(r->buffer, r->buffer + size, r->used);
        at_load_progress_report(progress, at_source_file_position(r->source),
                                at_source_file_size(r->source));
    }
    assert(r->used == 0);
    return AT_OK;
}

static at_err read_source(at_source *source, const at_lines_parser *parser,
                          const at_load_progress *progress, at_sparse_builders *builders,
                          at_fail *fail)
{
    assert(source && parser && builders);
    assert(parser->row_size_min > 0 && parser->number_size_min > 0);
    reader r = {
        .source = source, .parser = parser, .builders = builders, .cores = at_machine_cores()};
    if (r.cores > CHUNKS_MAX) r.cores = CHUNKS_MAX;
    r.size = (size_t)CHUNK_SIZE * r.cores;
    uint64_t needed = at_source_size_max(source); /* plus a line feed and one spare byte */
    if (needed < r.size - 2) r.size = (size_t)needed + 2;
    r.buffer = malloc(r.size);
    if (!r.buffer) return no_memory(&r, fail);
    at_err err = read_blocks(&r, progress, fail);
    free(r.buffer);
    return err;
}

static at_err read_file(const char *path, const at_lines_parser *parser,
                        const at_load_progress *progress, at_sparse_builders *builders,
                        at_fail *fail)
{
    at_source *source;
    AT_TRY(at_source_open(path, &source, fail));
    at_err err = read_source(source, parser, progress, builders, fail);
    at_source_close(source);
    return err;
}

at_err at_lines_load(at_dataset *set, const at_file_list *files, const at_lines_parser *parser,
                     const at_sparse_build_options *options, at_fail *fail)
{
    assert(files->count > 0);
    at_sparse_builders builders = {0};
    at_err             err = AT_OK;
    for (size_t i = 0; !err && i < files->count; i++)
        err = read_file(files->path[i], parser, set->progress, &builders, fail);
    if (!err) err = at_sparse_builders_finish(&builders, set, options, fail);
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
    /* Damage further on is reported when the whole file is read. */
    (void)at_source_read(source, bytes, size - 1, &got, NULL);
    at_source_close(source);
    bytes[got] = '\0';
    return got;
}
