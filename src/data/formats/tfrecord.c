#include "data/formats/tfrecord.h"

#include "base/crc32c.h"
#include "base/text.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEADER_SIZE = 12,
    FOOTER_SIZE = 4,
    RECORD_SIZE_MAX = 1 << 28, /* LIMIT: a record is held in memory as a whole */
    ROOM_FIRST = 1 << 16,
};

static uint64_t little_endian(const unsigned char *p, int size)
{
    uint64_t value = 0;
    for (int i = 0; i < size; i++) value |= (uint64_t)p[i] << (8 * i);
    return value;
}

void at_tfrecord_take(at_tfrecord *record, at_source *source)
{
    assert(source);
    *record = (at_tfrecord){.source = source};
}

at_err at_tfrecord_open(at_tfrecord *record, const char *path, at_fail *fail)
{
    at_source *source;
    *record = (at_tfrecord){0};
    AT_TRY(at_source_open(path, &source, fail));
    at_tfrecord_take(record, source);
    return AT_OK;
}

void at_tfrecord_close(at_tfrecord *record)
{
    assert(record);
    at_source_close(record->source);
    free(record->bytes);
    *record = (at_tfrecord){0};
}

at_err at_tfrecord_wrong(const at_tfrecord *record, const char *hint, at_fail *fail,
                         const char *format, ...)
{
    char    words[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    return at_fail_set(fail, AT_ERR_FORMAT, hint, "%s: record %llu at byte %llu: %s",
                       at_source_path(record->source), (unsigned long long)record->index,
                       (unsigned long long)record->position, words);
}

static bool is_header(const unsigned char header[HEADER_SIZE])
{
    return at_crc32c_masked(header, 8) == little_endian(header + 8, 4);
}

/* Room for `size` bytes, which the rest of the file can hold at all. */
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

static at_err cut_off(const at_tfrecord *record, at_fail *fail)
{
    return at_tfrecord_wrong(record, AT_SOURCE_GET_AGAIN, fail, "the file ends inside of it");
}

static at_err read_header(at_tfrecord *record, const unsigned char header[HEADER_SIZE],
                          at_fail *fail)
{
    if (!is_header(header))
        return at_tfrecord_wrong(record, AT_SOURCE_GET_AGAIN, fail,
                                 record->index == 1 ? "this is no TFRecord file"
                                                    : "the checksum of its length is wrong");
    uint64_t size = little_endian(header, 8);
    if (size > RECORD_SIZE_MAX)
        return at_tfrecord_wrong(record, "write smaller records", fail,
                                 "it has %llu bytes, %d are the most", (unsigned long long)size,
                                 RECORD_SIZE_MAX);
    if (size + FOOTER_SIZE > at_source_size_max(record->source)) return cut_off(record, fail);
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
    if (got < sizeof header) return cut_off(record, fail);
    AT_TRY(read_header(record, header, fail));
    size_t whole = record->size + FOOTER_SIZE;
    AT_TRY(at_source_read(record->source, record->bytes, whole, &got, fail));
    if (got < whole) return cut_off(record, fail);
    uint32_t told = (uint32_t)little_endian(record->bytes + record->size, 4);
    if (at_crc32c_masked(record->bytes, record->size) == told) return AT_OK;
    return at_tfrecord_wrong(record, AT_SOURCE_GET_AGAIN, fail, "its checksum is wrong");
}

at_byte_range at_tfrecord_message(const at_tfrecord *record)
{
    assert(record->size <= record->room);
    return (at_byte_range){record->bytes, record->bytes + record->size};
}

bool at_tfrecord_is_file(const char *path)
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
