/* event_log.h - presents fuzzer input as an event log whose checksums are right, because a fuzzer
 * cannot guess them, and whose info has the size that it says. */
#ifndef TESTS_FUZZ_EVENT_LOG_H
#define TESTS_FUZZ_EVENT_LOG_H

#include <jansson.h>
#include <stdbool.h>
#include <string.h>

#include "base/crc32c.h"
#include "folder.h"
#include "record/log/eventlog.h"
#include "record/runinfo.h"

enum { LOG_HEAD = 16, LOG_SIZE_MAX = 1 << 16 };

static inline void put_checksum(uint8_t *to, const uint8_t *bytes, size_t size)
{
    uint32_t sum = at_crc32c(bytes, size);
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(sum >> (8 * i));
}

/* The size of the JSON text at the beginning of these bytes; if there is none, the size that the
 * head says. */
static inline uint64_t put_info_size(uint8_t *log, size_t size)
{
    json_error_t error;
    json_t      *json =
        json_loadb((const char *)log + LOG_HEAD, size - LOG_HEAD, JSON_DISABLE_EOF_CHECK, &error);
    uint64_t info = 0;
    for (int i = 0; json && i < 4; i++) log[8 + i] = (uint8_t)((unsigned)error.position >> (8 * i));
    for (int i = 0; i < 4; i++) info |= (uint64_t)log[8 + i] << (8 * i);
    json_decref(json);
    return info;
}

/* Corrects the checksums of the head and of all records that are complete. */
static inline void seal_log(uint8_t *log, size_t size)
{
    if (size < LOG_HEAD) return;
    uint64_t info = put_info_size(log, size);
    if (info > size - LOG_HEAD) return;
    put_checksum(log + 12, log + LOG_HEAD, info);
    for (size_t at = LOG_HEAD + info; at < size;) {
        uint64_t record = 0;
        int      digits = 0;
        bool     more = true;
        for (; more && digits < 5 && at < size; digits++, at++) {
            record |= (uint64_t)(log[at] & 0x7f) << (7 * digits);
            more = log[at] >= 0x80;
        }
        if (more || size - at < 4 || record > size - at - 4) return;
        put_checksum(log + at, log + at + 4, record);
        at += 4 + record;
    }
}

/* FOLDER/events.bin with these bytes, sealed; returns its path until the next call. */
static inline const char *fuzz_log(const uint8_t *data, size_t size)
{
    static uint8_t log[LOG_SIZE_MAX];
    if (size > sizeof log) size = sizeof log;
    memcpy(log, data, size);
    seal_log(log, size);
    return fuzz_file("events.bin", log, size, NULL, 0);
}

/* False when the log has so many workers that they would only cost memory. */
static inline bool fuzz_log_is_small(const char *path)
{
    enum { WORKERS_MAX = 64 };
    at_eventlog *log = NULL;
    at_fail      fail = {0};
    if (at_eventlog_open(path, &log, &fail)) return true;
    bool small = at_run_info_workers(at_eventlog_info(log)) <= WORKERS_MAX;
    at_eventlog_close(log);
    return small;
}

#endif
