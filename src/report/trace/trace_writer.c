#include "report/trace/trace_writer.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

enum { TEXT_SIZE = 512 }; /* a name with everything escaped; longer ones are cut */

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Length of a whole UTF-8 character, 0 when it is not one. */
static size_t character(const unsigned char *c)
{
    size_t size = *c < 0x80 ? 1 : *c < 0xc2 ? 0 : *c < 0xe0 ? 2 : *c < 0xf0 ? 3 : *c < 0xf5 ? 4 : 0;
    for (size_t i = 1; i < size; i++)
        if ((c[i] & 0xc0) != 0x80) return 0;
    bool is_surrogate = size == 3 && c[0] == 0xed && c[1] >= 0xa0;
    bool is_long = (size == 3 && c[0] == 0xe0 && c[1] < 0xa0) ||
                   (size == 4 && c[0] == 0xf0 && c[1] < 0x90) ||
                   (size == 4 && c[0] == 0xf4 && c[1] >= 0x90);
    return is_surrogate || is_long ? 0 : size;
}

/* Writes one character as JSON wants it; returns its size. */
static size_t escape(char *to, const unsigned char *c, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    if (size == 0) {
        *to = '?';
        return 1;
    }
    if (*c == '"' || *c == '\\') {
        to[0] = '\\';
        to[1] = (char)*c;
        return 2;
    }
    if (*c < ' ' || *c == 0x7f) {
        memcpy(to, "\\u00", 4);
        to[4] = digits[*c >> 4];
        to[5] = digits[*c & 15];
        return 6;
    }
    memcpy(to, c, size);
    return size;
}

/* The text in quotes, cut to what fits. */
static void quote(char quoted[TEXT_SIZE], const char *text)
{
    enum { LONGEST = 6, CLOSING = 2 };
    size_t used = 0;
    assert(text);
    quoted[used++] = '"';
    for (const unsigned char *c = (const unsigned char *)text; *c;) {
        size_t size = character(c);
        if (used + LONGEST + CLOSING > TEXT_SIZE) break; /* whole characters, or none */
        used += escape(quoted + used, c, size);
        c += size > 0 ? size : 1;
    }
    memcpy(quoted + used, "\"", CLOSING);
}

void at_trace_writer_quote(at_text *args, const char *text)
{
    char quoted[TEXT_SIZE];
    quote(quoted, text);
    at_text_add(args, "%s", quoted);
}

/* `key` is the text before the value. */
static void put_text(at_trace_writer *out, const char *key, const char *value)
{
    char quoted[TEXT_SIZE];
    quote(quoted, value);
    at_append_file_text(out->spool, key);
    at_append_file_text(out->spool, quoted);
}

static void put_whole(at_trace_writer *out, const char *key, uint64_t value)
{
    at_append_file_text(out->spool, key);
    at_append_file_whole(out->spool, value);
}

/* Microseconds with three decimals. */
static void put_time(at_trace_writer *out, const char *key, at_ns value)
{
    assert(value >= 0);
    unsigned rest = (unsigned)(value % 1000);
    put_whole(out, key, (uint64_t)value / 1000);
    if (rest == 0) return;
    at_append_file_byte(out->spool, '.');
    at_append_file_byte(out->spool, (char)('0' + rest / 100));
    at_append_file_byte(out->spool, (char)('0' + rest / 10 % 10));
    at_append_file_byte(out->spool, (char)('0' + rest % 10));
}

static void begin_event(at_trace_writer *out, char phase, at_trace_row row)
{
    if (out->begun) at_append_file_byte(out->spool, ',');
    out->begun = true;
    at_append_file_text(out->spool, "\n{\"ph\":\"");
    at_append_file_byte(out->spool, phase);
    put_whole(out, "\",\"pid\":", row.process);
    put_whole(out, ",\"tid\":", row.thread);
}

static void end_event(at_trace_writer *out, const char *args)
{
    if (args) {
        at_append_file_text(out->spool, ",\"args\":{");
        at_append_file_text(out->spool, args);
        at_append_file_byte(out->spool, '}');
    }
    at_append_file_byte(out->spool, '}');
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Once something was left out everything later is, too: a trace has no holes. */
static bool has_room(at_trace_writer *out, uint64_t events)
{
    if (out->omitted == 0 && out->written + events <= out->events_max) {
        out->written += events;
        return true;
    }
    if (out->omitted == 0) out->cut_at = out->end;
    out->omitted += events;
    return false;
}

static void put_name(at_trace_writer *out, at_trace_row row, const char *what, const char *name)
{
    char    buffer[TEXT_SIZE + 16];
    at_text args = at_text_in(buffer, sizeof buffer);
    at_text_add(&args, "\"name\":");
    at_trace_writer_quote(&args, name);
    begin_event(out, 'M', row);
    put_text(out, ",\"name\":", what);
    end_event(out, buffer);
}

void at_trace_writer_process(at_trace_writer *out, uint32_t process, const char *name)
{
    assert(process > 0);
    put_name(out, (at_trace_row){process, 0}, "process_name", name);
}

void at_trace_writer_row(at_trace_writer *out, at_trace_row row, const char *name)
{
    char order[48];
    snprintf(order, sizeof order, "\"sort_index\":%u", row.thread);
    put_name(out, row, "thread_name", name);
    begin_event(out, 'M', row);
    at_append_file_text(out->spool, ",\"name\":\"thread_sort_index\"");
    end_event(out, order);
}

void at_trace_writer_slice(at_trace_writer *out, at_trace_row row, const char *name,
                           const char *colour, at_ns begin, at_ns end, const char *args)
{
    assert(begin >= 0);
    assert(begin <= end);
    if (end < out->from) return;
    bool fits = has_room(out, 1);
    if (end > out->end) out->end = end;
    if (!fits) return;
    begin_event(out, 'X', row);
    put_text(out, ",\"name\":", name);
    if (colour) put_text(out, ",\"cname\":", colour);
    put_time(out, ",\"ts\":", begin);
    put_time(out, ",\"dur\":", end - begin);
    end_event(out, args);
}

/* `scope`: a line through its row (t) or through all of them (g). */
static void put_instant(at_trace_writer *out, at_trace_row row, const char *name, char scope,
                        at_ns at, const char *args)
{
    begin_event(out, 'i', row);
    put_text(out, ",\"name\":", name);
    at_append_file_text(out->spool, ",\"s\":\"");
    at_append_file_byte(out->spool, scope);
    put_time(out, "\",\"ts\":", at);
    end_event(out, args);
}

void at_trace_writer_instant(at_trace_writer *out, at_trace_row row, const char *name, at_ns at,
                             const char *args)
{
    assert(at >= 0);
    if (at < out->from) return;
    if (at > out->end) out->end = at;
    if (has_room(out, 1)) put_instant(out, row, name, 't', at, args);
}

void at_trace_writer_mark_cut(at_trace_writer *out, at_trace_row row, const char *name)
{
    if (out->omitted > 0) put_instant(out, row, name, 'g', out->cut_at, NULL);
}

static void put_end(at_trace_writer *out, char phase, const char *name, at_trace_row row, at_ns at)
{
    begin_event(out, phase, row);
    put_text(out, ",\"name\":", name);
    put_text(out, ",\"cat\":", name);
    put_whole(out, ",\"id\":", out->arrows);
    put_time(out, ",\"ts\":", at);
    if (phase == 'f')
        at_append_file_text(out->spool,
                            ",\"bp\":\"e\""); /* ends in the slice around it, not the next one */
    end_event(out, NULL);
}

void at_trace_writer_arrow(at_trace_writer *out, const char *name, at_trace_row from, at_ns from_at,
                           at_trace_row to, at_ns to_at)
{
    assert(from_at >= 0);
    assert(to_at >= 0);
    if (!has_room(out, 2)) return;
    out->arrows++;
    put_end(out, 's', name, from, from_at);
    put_end(out, 'f', name, to, to_at);
}

/* ---- the file -------------------------------------------------------------------------------- */

static at_err open_spool(at_trace_writer *out, at_fail *fail)
{
    char *slash = strrchr(out->temporary, '/');
    (void)unlink(out->temporary); /* of a trace that was never finished */
    if (!slash) return at_append_file_open(".", out->temporary, false, &out->spool, fail);
    *slash = '\0';
    at_err err = at_append_file_open(slash > out->temporary ? out->temporary : "/", slash + 1,
                                     false, &out->spool, fail);
    *slash = '/';
    return err;
}

at_err at_trace_writer_open(at_trace_writer *out, const char *path, uint64_t events_max, at_ns from,
                            at_fail *fail)
{
    assert(path);
    *out = (at_trace_writer){.events_max = events_max, .from = from, .cut_at = AT_NEVER};
    out->path = strdup(path);
    if (asprintf(&out->temporary, "%s.part", path) < 0) out->temporary = NULL;
    at_err err = out->path && out->temporary ? open_spool(out, fail)
                                             : at_fail_memory_for(fail, "for a trace");
    if (err) {
        at_trace_writer_discard(out);
        return err;
    }
    at_append_file_text(out->spool, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
    return AT_OK;
}

at_err at_trace_writer_commit(at_trace_writer *out, const char *other, at_fail *fail)
{
    assert(out->spool);
    at_append_file_text(out->spool, "\n],\n\"otherData\":");
    at_append_file_text(out->spool, other);
    at_append_file_text(out->spool, "}\n");
    at_err err = at_append_file_close(out->spool, fail);
    out->spool = NULL;
    if (!err && rename(out->temporary, out->path))
        err =
            at_fail_set(fail, AT_ERR_IO, NULL, "%s: cannot write: %s", out->path, strerror(errno));
    at_trace_writer_discard(out);
    return err;
}

void at_trace_writer_discard(at_trace_writer *out)
{
    if (out->spool) at_append_file_close(out->spool, NULL);
    if (out->temporary) (void)unlink(out->temporary); /* after a commit it is not there any more */
    free(out->temporary);
    free(out->path);
    out->spool = NULL;
    out->temporary = out->path = NULL;
}
