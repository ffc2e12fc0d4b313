#include "report/trace/trace_writer.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "report/summary/utf8.h"

enum { TEXT_SIZE = 512 }; /* of an escaped text; longer ones are truncated */

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Writes one character of `size` bytes, escaped for JSON; returns the size of the result. */
static size_t escape(char *to, const char *text, size_t size)
{
    static const char    digits[] = "0123456789abcdef";
    const unsigned char *c = (const unsigned char *)text;
    if (size == 1 && *c >= 0x80) { /* not UTF-8 */
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

/* Quotes a text, truncated to what fits. */
static void quote(char quoted[TEXT_SIZE], const char *text)
{
    enum { LONGEST = 6, CLOSING = 2 };
    size_t used = 0;
    assert(text);
    quoted[used++] = '"';
    while (*text && used + LONGEST + CLOSING <= TEXT_SIZE) { /* whole characters only */
        uint32_t code;
        size_t   size = at_utf8_next(text, &code);
        used += escape(quoted + used, text, size);
        text += size;
    }
    memcpy(quoted + used, "\"", CLOSING);
}

void at_trace_writer_quote(at_text *args, const char *text)
{
    char quoted[TEXT_SIZE];
    quote(quoted, text);
    at_text_add(args, "%s", quoted);
}

/* `key` is the text up to the value. */
static void put_text(at_trace_writer *out, const char *key, const char *value)
{
    char quoted[TEXT_SIZE];
    quote(quoted, value);
    at_append_file_text(out->file, key);
    at_append_file_text(out->file, quoted);
}

static void put_whole(at_trace_writer *out, const char *key, uint64_t value)
{
    at_append_file_text(out->file, key);
    at_append_file_whole(out->file, value);
}

/* Microseconds with three decimals. */
static void put_time(at_trace_writer *out, const char *key, at_ns value)
{
    assert(value >= 0);
    unsigned rest = (unsigned)(value % 1000);
    put_whole(out, key, (uint64_t)value / 1000);
    if (rest == 0) return;
    at_append_file_byte(out->file, '.');
    at_append_file_byte(out->file, (char)('0' + rest / 100));
    at_append_file_byte(out->file, (char)('0' + rest / 10 % 10));
    at_append_file_byte(out->file, (char)('0' + rest % 10));
}

static void begin_event(at_trace_writer *out, char phase, at_trace_row row)
{
    if (out->begun) at_append_file_byte(out->file, ',');
    out->begun = true;
    at_append_file_text(out->file, "\n{\"ph\":\"");
    at_append_file_byte(out->file, phase);
    put_whole(out, "\",\"pid\":", row.process);
    put_whole(out, ",\"tid\":", row.thread);
}

static void end_event(at_trace_writer *out, const char *args)
{
    if (args) {
        at_append_file_text(out->file, ",\"args\":{");
        at_append_file_text(out->file, args);
        at_append_file_byte(out->file, '}');
    }
    at_append_file_byte(out->file, '}');
}

/* ---- events ---------------------------------------------------------------------------------- */

/* After the first omission everything later is omitted, too: a trace has no gaps. */
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
    at_append_file_text(out->file, ",\"name\":\"thread_sort_index\"");
    end_event(out, order);
}

void at_trace_writer_slice(at_trace_writer *out, at_trace_row row, const char *name,
                           const char *color, at_ns begin, at_ns end, const char *args)
{
    assert(begin >= 0);
    assert(begin <= end);
    if (end < out->from) return;
    bool fits = has_room(out, 1);
    if (end > out->end) out->end = end;
    if (!fits) return;
    begin_event(out, 'X', row);
    put_text(out, ",\"name\":", name);
    if (color) put_text(out, ",\"cname\":", color);
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
    at_append_file_text(out->file, ",\"s\":\"");
    at_append_file_byte(out->file, scope);
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
        at_append_file_text(out->file, ",\"bp\":\"e\""); /* binds to the enclosing slice */
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

static at_err open_temporary(at_trace_writer *out, at_fail *fail)
{
    char *slash = strrchr(out->temporary, '/');
    (void)unlink(out->temporary); /* left by a trace that was never finished */
    if (!slash) return at_append_file_open(".", out->temporary, false, &out->file, fail);
    *slash = '\0';
    at_err err = at_append_file_open(slash > out->temporary ? out->temporary : "/", slash + 1,
                                     false, &out->file, fail);
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
    at_err err = out->path && out->temporary ? open_temporary(out, fail)
                                             : at_fail_memory_for(fail, "for a trace");
    if (err) {
        at_trace_writer_discard(out);
        return err;
    }
    at_append_file_text(out->file, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
    return AT_OK;
}

at_err at_trace_writer_commit(at_trace_writer *out, const char *other, at_fail *fail)
{
    assert(out->file);
    at_append_file_text(out->file, "\n],\n\"otherData\":");
    at_append_file_text(out->file, other);
    at_append_file_text(out->file, "}\n");
    at_err err = at_append_file_close(out->file, fail);
    out->file = NULL;
    if (!err && rename(out->temporary, out->path))
        err =
            at_fail_set(fail, AT_ERR_IO, NULL, "%s: cannot write: %s", out->path, strerror(errno));
    at_trace_writer_discard(out);
    return err;
}

void at_trace_writer_discard(at_trace_writer *out)
{
    if (out->file) at_append_file_close(out->file, NULL);
    if (out->temporary) (void)unlink(out->temporary); /* fails after a commit, which renamed it */
    free(out->temporary);
    free(out->path);
    out->file = NULL;
    out->temporary = out->path = NULL;
}
