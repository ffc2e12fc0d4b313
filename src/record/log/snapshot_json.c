#include "record/log/snapshot_json.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* The integers of a snapshot, by name and offset; one table for both directions. */
static const struct {
    const char *name;
    size_t      offset;
} numbers[] = {
    {"version", offsetof(at_snapshot, version)},
    {"samples_used", offsetof(at_snapshot, samples_used)},
    {"samples_dropped", offsetof(at_snapshot, samples_dropped)},
    {"trace", offsetof(at_snapshot, trace)},
    {"dealt", offsetof(at_snapshot, dealt)},
    {"eval_samples_next", offsetof(at_snapshot, eval_samples_next)},
    {"clock", offsetof(at_snapshot, clock)},
    {"elapsed", offsetof(at_snapshot, elapsed)},
    {"in_busy", offsetof(at_snapshot, in_busy)},
    {"out_busy", offsetof(at_snapshot, out_busy)},
    {"messages", offsetof(at_snapshot, messages)},
};

/* The integers of a member, written as an array without names. */
static const size_t columns[] = {
    offsetof(at_member_snapshot, rounds),   offsetof(at_member_snapshot, rounds_ended),
    offsetof(at_member_snapshot, sequence), offsetof(at_member_snapshot, used),
    offsetof(at_member_snapshot, dropped),  offsetof(at_member_snapshot, share.time_limit),
};

enum {
    NUMBERS = sizeof numbers / sizeof *numbers,
    COLUMNS = sizeof columns / sizeof *columns,
    STATE_MAX = 64 << 20
};

/* All are 64 bits wide; numbers past 2^63 keep their bits. */
static json_t *wide_json(const void *base, size_t offset)
{
    int64_t wide;
    memcpy(&wide, (const char *)base + offset, sizeof wide);
    return json_integer(wide);
}

static bool read_wide(const json_t *value, void *base, size_t offset)
{
    int64_t wide = json_integer_value(value);
    memcpy((char *)base + offset, &wide, sizeof wide);
    return json_is_integer(value);
}

/* ---- writing --------------------------------------------------------------------------------- */

static json_t *member_json(const at_member_snapshot *member)
{
    json_t *row = json_array();
    for (size_t i = 0; i < COLUMNS; i++) json_array_append_new(row, wide_json(member, columns[i]));
    json_array_append_new(row, json_integer(member->share.samples));
    json_array_append_new(row, json_real(member->sample_ns));
    return row;
}

static json_t *members_json(const at_snapshot *snapshot)
{
    json_t *members = json_array();
    for (uint32_t i = 0; i < snapshot->workers; i++)
        json_array_append_new(members, member_json(&snapshot->member[i]));
    return members;
}

static json_t *targets_json(const at_snapshot *snapshot)
{
    json_t *targets = json_array();
    for (int i = 0; i < AT_TARGETS_MAX; i++) {
        const at_target_hit *hit = &snapshot->target[i];
        json_array_append_new(
            targets, json_pack("[b, I, I]", hit->hit, (json_int_t)hit->step, (json_int_t)hit->at));
    }
    return targets;
}

static json_t *bytes_json(const unsigned char *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    char             *text = malloc(2 * size + 1);
    if (!text) return NULL;
    for (size_t i = 0; i < size; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    json_t *value = json_stringn(text, 2 * size);
    free(text);
    return value;
}

json_t *at_snapshot_json(const at_snapshot *snapshot)
{
    assert(snapshot->workers >= 1);
    json_t *object = json_object();
    json_t *state = bytes_json(snapshot->size_state, snapshot->size_bytes);
    for (size_t i = 0; i < NUMBERS; i++)
        json_object_set_new(object, numbers[i].name, wide_json(snapshot, numbers[i].offset));
    json_object_set_new(object, "targets", targets_json(snapshot));
    json_object_set_new(object, "members", members_json(snapshot));
    if (json_object_set_new(object, "size_state", state)) { /* fails too when `state` is NULL */
        json_decref(object);
        return NULL;
    }
    return object;
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool read_member(const json_t *row, at_member_snapshot *member)
{
    bool   valid = json_array_size(row) == COLUMNS + 2;
    double speed = json_number_value(json_array_get(row, COLUMNS + 1));
    for (size_t i = 0; valid && i < COLUMNS; i++)
        valid = read_wide(json_array_get(row, i), member, columns[i]);
    json_int_t samples = json_integer_value(json_array_get(row, COLUMNS));
    member->share.samples = (uint32_t)samples;
    member->sample_ns = speed;
    return valid && samples >= 0 && samples <= UINT32_MAX && member->share.time_limit >= 0 &&
           isfinite(speed) && speed >= 0;
}

static bool read_targets(const json_t *targets, at_snapshot *snapshot)
{
    if (json_array_size(targets) != AT_TARGETS_MAX) return false;
    for (size_t i = 0; i < AT_TARGETS_MAX; i++) {
        int        hit;
        json_int_t step, at;
        if (json_unpack(json_array_get(targets, i), "[b, I, I]", &hit, &step, &at)) return false;
        snapshot->target[i] = (at_target_hit){.hit = hit, .step = (uint64_t)step, .at = at};
    }
    return true;
}

static int digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_bytes(const json_t *value, unsigned char *bytes, size_t size)
{
    const char *text = json_string_value(value);
    for (size_t i = 0; i < size; i++) {
        int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
        if (high < 0 || low < 0) return false;
        bytes[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

static bool read_snapshot(const json_t *object, at_snapshot *snapshot)
{
    const json_t *members = json_object_get(object, "members");
    for (size_t i = 0; i < NUMBERS; i++)
        if (!read_wide(json_object_get(object, numbers[i].name), snapshot, numbers[i].offset))
            return false;
    for (uint32_t i = 0; i < snapshot->workers; i++)
        if (!read_member(json_array_get(members, i), &snapshot->member[i])) return false;
    bool times = snapshot->clock >= 0 && snapshot->elapsed >= 0 && snapshot->in_busy >= 0 &&
                 snapshot->out_busy >= 0;
    return times && read_targets(json_object_get(object, "targets"), snapshot) &&
           read_bytes(json_object_get(object, "size_state"), snapshot->size_state,
                      snapshot->size_bytes);
}

at_err at_snapshot_read(const json_t *object, at_snapshot **out, at_fail *fail)
{
    size_t workers = json_array_size(json_object_get(object, "members"));
    size_t digits = json_string_length(json_object_get(object, "size_state"));
    bool   valid = workers >= 1 && workers <= AT_WORKERS_MAX && digits % 2 == 0;
    *out = NULL;
    if (!valid || !json_is_string(json_object_get(object, "size_state")) || digits > STATE_MAX)
        return at_fail_set(fail, AT_ERR_FORMAT, NULL, "not a valid run state");
    size_t       members = workers * sizeof(at_member_snapshot);
    at_snapshot *snapshot = calloc(1, sizeof *snapshot + members + digits / 2 + 1);
    if (!snapshot) return at_fail_memory(fail);
    snapshot->workers = (uint32_t)workers;
    snapshot->member = (at_member_snapshot *)(void *)(snapshot + 1);
    snapshot->size_state = (char *)(snapshot + 1) + members;
    snapshot->size_bytes = digits / 2;
    if (read_snapshot(object, snapshot)) {
        *out = snapshot;
        return AT_OK;
    }
    free(snapshot);
    return at_fail_set(fail, AT_ERR_FORMAT, NULL, "not a valid run state");
}
