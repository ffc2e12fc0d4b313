#include "data/formats/tfrecord.h"

#include "base/crc32c.h"
#include "base/text.h"
#include "data/files/split_files.h"
#include "data/formats/format.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEADER_SIZE = 12,
    FOOTER_SIZE = 4,
    RECORD_SIZE_MAX = 1 << 28, /* LIMIT: a whole record is held in memory */
    ROOM_FIRST = 1 << 16,
};

static uint64_t little_endian(const unsigned char *p, int size)
{
    uint64_t value = 0;
    for (int i = 0; i < size; i++) value |= (uint64_t)p[i] << (8 * i);
    return value;
}

at_err at_tfrecord_open(at_tfrecord *record, const char *path, at_fail *fail)
{
    *record = (at_tfrecord){0};
    return at_source_open(path, &record->source, fail);
}

void at_tfrecord_close(at_tfrecord *record)
{
    assert(record);
    at_source_close(record->source);
    free(record->bytes);
    *record = (at_tfrecord){0};
}

at_err at_tfrecord_error(const at_tfrecord *record, const char *hint, at_fail *fail,
                         const char *format, ...)
{
    char    text[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return at_fail_set(fail, AT_ERR_FORMAT, hint, "%s: record %llu at byte %llu: %s",
                       at_source_path(record->source), (unsigned long long)record->index,
                       (unsigned long long)record->position, text);
}

static bool is_header(const unsigned char header[HEADER_SIZE])
{
    return at_crc32c_masked(header, 8) == little_endian(header + 8, 4);
}

/* Grows the buffer to `size` bytes, which the file is large enough to contain. */
static at_err make_room(at_tfrecord *record, size_t size, at_fail *fail)
{
    if (size <= record->room) return AT_OK;
    size_t room = record->room ? record->room : ROOM_FIRST;
    while (room < size) room *= 2;
    unsigned char *more = realloc(record->bytes, room);
    if (!more)
        return at_fail_memory_for(fail, "for a record of %s", at_source_path(record->source));
    record->bytes = more;
    record->room = room;
    return AT_OK;
}

static at_err truncated(const at_tfrecord *record, at_fail *fail)
{
    return at_tfrecord_error(record, AT_SOURCE_GET_AGAIN, fail, "the file ends within the record");
}

static at_err read_header(at_tfrecord *record, const unsigned char header[HEADER_SIZE],
                          at_fail *fail)
{
    if (!is_header(header))
        return at_tfrecord_error(record, AT_SOURCE_GET_AGAIN, fail,
                                 record->index == 1 ? "not a TFRecord file"
                                                    : "wrong checksum of the record length");
    uint64_t size = little_endian(header, 8);
    if (size > RECORD_SIZE_MAX)
        return at_tfrecord_error(record, "write smaller records", fail,
                                 "the record has %llu bytes (at most %d are supported)",
                                 (unsigned long long)size, RECORD_SIZE_MAX);
    if (size + FOOTER_SIZE > at_source_size_max(record->source)) return truncated(record, fail);
    record->size = (size_t)size;
    return make_room(record, record->size + FOOTER_SIZE, fail);
}

at_err at_tfrecord_next(at_tfrecord *record, bool *more, at_fail *fail)
{
    assert(record->source && more);
    unsigned char header[HEADER_SIZE];
    size_t        got;
    record->index++;
    record->position = at_source_position(record->source);
    AT_TRY(at_source_read(record->source, header, sizeof header, &got, fail));
    *more = got > 0;
    if (!*more) return AT_OK;
    if (got < sizeof header) return truncated(record, fail);
    AT_TRY(read_header(record, header, fail));
    size_t whole = record->size + FOOTER_SIZE;
    AT_TRY(at_source_read(record->source, record->bytes, whole, &got, fail));
    if (got < whole) return truncated(record, fail);
    uint32_t expected = (uint32_t)little_endian(record->bytes + record->size, 4);
    if (at_crc32c_masked(record->bytes, record->size) == expected) return AT_OK;
    return at_tfrecord_error(record, AT_SOURCE_GET_AGAIN, fail, "wrong checksum of the record");
}

at_byte_range at_tfrecord_message(const at_tfrecord *record)
{
    assert(record->size <= record->room);
    return (at_byte_range){record->bytes, record->bytes + record->size};
}

/* True when a file begins with a record. */
static bool is_tfrecord_file(const char *path)
{
    assert(path);
    unsigned char header[HEADER_SIZE];
    at_source    *source;
    size_t        got = 0;
    if (at_source_open(path, &source, NULL)) return false;
    at_err err = at_source_read(source, header, sizeof header, &got, NULL);
    at_source_close(source);
    return !err && got == sizeof header && is_header(header);
}

/* The first record shows which kind of data the files have. */
static at_err find_kind(at_tfrecord *record, bool *clicks, at_fail *fail)
{
    static const char *const names[] = {"index", "value"};
    at_feature               features[2];
    bool                     more;
    AT_TRY(at_tfrecord_next(record, &more, fail));
    *clicks = more && at_example_find(at_tfrecord_message(record), names, features, 2) &&
              (features[0].kind || features[1].kind);
    return AT_OK;
}

static at_err load(at_dataset *set, const char *name, const at_file_list *files, at_fail *fail)
{
    assert(files->count > 0);
    at_tfrecord record;
    bool        clicks = false;
    AT_TRY(at_tfrecord_open(&record, files->path[0], fail));
    at_err err = find_kind(&record, &clicks, fail);
    at_tfrecord_close(&record);
    if (err) return err;
    return clicks ? at_tfrecord_load_clicks(set, name, files, fail)
                  : at_tfrecord_load_images(set, name, files, fail);
}

const at_format at_format_tfrecord = {
    .name = "tfrecord",
    .summary = "TFRecord files of tf.train.Example, clicks (sparse) or images",
    .expects = "TFRecord files",
    .slow_to_read = true,
    .is_split_file = is_tfrecord_file,
    .load_files = load,
};
