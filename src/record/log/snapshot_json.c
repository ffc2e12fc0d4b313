#include "record/log/snapshot_json.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "record/log/json_fields.h"

static const at_json_field numbers[] = {
    {"version", AT_JSON_U64, offsetof(at_snapshot, version)},
    {"samples_used", AT_JSON_U64, offsetof(at_snapshot, samples_used)},
    {"samples_dropped", AT_JSON_U64, offsetof(at_snapshot, samples_dropped)},
    {"trace", AT_JSON_U64, offsetof(at_snapshot, trace)},
    {"dealt", AT_JSON_U64, offsetof(at_snapshot, dealt)},
    {"eval_samples_next", AT_JSON_U64, offsetof(at_snapshot, eval_samples_next)},
    {"clock", AT_JSON_COUNT, offsetof(at_snapshot, clock)},
    {"elapsed", AT_JSON_COUNT, offsetof(at_snapshot, elapsed)},
    {"in_busy", AT_JSON_COUNT, offsetof(at_snapshot, in_busy)},
    {"out_busy", AT_JSON_COUNT, offsetof(at_snapshot, out_busy)},
    {"messages", AT_JSON_U64, offsetof(at_snapshot, messages)},
};

/* A member is written as an array without names. The last column is left out when it is 0, as it
 * is in checkpoints of version 0.1. */
static const at_json_field columns[] = {
    {"rounds", AT_JSON_U64, offsetof(at_member_snapshot, rounds)},
    {"rounds_ended", AT_JSON_U64, offsetof(at_member_snapshot, rounds_ended)},
    {"sequence", AT_JSON_U64, offsetof(at_member_snapshot, sequence)},
    {"used", AT_JSON_U64, offsetof(at_member_snapshot, used)},
    {"dropped", AT_JSON_U64, offsetof(at_member_snapshot, dropped)},
    {"time_limit", AT_JSON_COUNT, offsetof(at_member_snapshot, share.time_limit)},
    {"samples", AT_JSON_U32, offsetof(at_member_snapshot, share.samples)},
    {"sample_ns", AT_JSON_REAL, offsetof(at_member_snapshot, sample_ns)},
    {"redrawn", AT_JSON_U64, offsetof(at_member_snapshot, redrawn)},
};

enum {
    NUMBERS = sizeof numbers / sizeof *numbers,
    COLUMNS = sizeof columns / sizeof *columns,
    STATE_MAX = 64 << 20
};

/* ---- writing --------------------------------------------------------------------------------- */

static json_t *member_json(const at_member_snapshot *member)
{
    json_t *row = json_array();
    size_t  count = member->redrawn > 0 ? COLUMNS : COLUMNS - 1;
    for (size_t i = 0; i < count; i++)
        json_array_append_new(row, at_json_field_get(&columns[i], member));
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

/* False without memory. */
static bool add_state(json_t *object, const char *key, const at_rule_state *state)
{
    json_t *value =
        json_pack("{s:s, s:I, s:o}", "rule", state->rule, "version", (json_int_t)state->version,
                  "bytes", bytes_json(state->bytes, state->size));
    return !json_object_set_new(object, key, value); /* fails too when `value` is NULL */
}

json_t *at_snapshot_json(const at_snapshot *snapshot)
{
    assert(snapshot->workers >= 1);
    json_t *object = json_object();
    at_json_fields_write(numbers, NUMBERS, snapshot, object);
    json_object_set_new(object, "targets", targets_json(snapshot));
    if (snapshot->switched)
        json_object_set_new(object, "switched_at", json_integer((json_int_t)snapshot->switched_at));
    if (snapshot->to_workers_bytes > 0 || snapshot->to_hub_bytes > 0)
        json_object_set_new(object, "sent_bytes",
                            json_pack("[I, I]", (json_int_t)snapshot->to_workers_bytes,
                                      (json_int_t)snapshot->to_hub_bytes));
    json_object_set_new(object, "members", members_json(snapshot));
    if (add_state(object, "size_state", &snapshot->size) &&
        (snapshot->gather.size == 0 || add_state(object, "gather_state", &snapshot->gather)))
        return object;
    json_decref(object);
    return NULL;
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool read_member(const json_t *row, at_member_snapshot *member)
{
    size_t count = json_array_size(row);
    if (count != COLUMNS && count != COLUMNS - 1) return false;
    for (size_t i = 0; i < count; i++)
        if (!at_json_field_set(&columns[i], json_array_get(row, i), member)) return false;
    return member->sample_ns >= 0;
}

static bool read_targets(const json_t *targets, at_snapshot *snapshot)
{
    if (json_array_size(targets) != AT_TARGETS_MAX) return false;
    for (size_t i = 0; i < AT_TARGETS_MAX; i++) {
        int        hit;
        json_int_t step, at;
        if (json_unpack(json_array_get(targets, i), "[b, I, I]", &hit, &step, &at)) return false;
        if (step < 0 || at < 0) return false;
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

static bool read_state(const json_t *object, at_rule_state *state)
{
    const char *rule = json_string_value(json_object_get(object, "rule"));
    json_t     *version = json_object_get(object, "version");
    if (!rule || strlen(rule) >= sizeof state->rule || !json_is_integer(version)) return false;
    memcpy(state->rule, rule, strlen(rule) + 1);
    state->version = (uint32_t)json_integer_value(version);
    return read_bytes(json_object_get(object, "bytes"), state->bytes, state->size);
}

/* Only runs that have switched have it. */
static bool read_switch(const json_t *at, at_snapshot *snapshot)
{
    if (!at) return true;
    if (!json_is_integer(at) || json_integer_value(at) < 0) return false;
    snapshot->switched = true;
    snapshot->switched_at = (uint64_t)json_integer_value(at);
    return true;
}

/* Only runs in which vectors are sent have it. */
static bool read_traffic(json_t *sent, at_snapshot *snapshot)
{
    const json_int_t most = INT64_C(1) << 60; /* the run adds to it */
    json_int_t       down, up;
    if (!sent) return true;
    if (json_unpack(sent, "[I, I]", &down, &up)) return false;
    if (down < 0 || down > most || up < 0 || up > most) return false;
    snapshot->to_workers_bytes = (uint64_t)down;
    snapshot->to_hub_bytes = (uint64_t)up;
    return true;
}

static bool read_snapshot(const json_t *object, at_snapshot *snapshot)
{
    const json_t *members = json_object_get(object, "members");
    if (at_json_fields_read(numbers, NUMBERS, object, snapshot)) return false;
    for (uint32_t i = 0; i < snapshot->workers; i++)
        if (!read_member(json_array_get(members, i), &snapshot->member[i])) return false;
    return read_targets(json_object_get(object, "targets"), snapshot) &&
           read_switch(json_object_get(object, "switched_at"), snapshot) &&
           read_traffic(json_object_get(object, "sent_bytes"), snapshot) &&
           read_state(json_object_get(object, "size_state"), &snapshot->size) &&
           (snapshot->gather.size == 0 ||
            read_state(json_object_get(object, "gather_state"), &snapshot->gather));
}

/* The length of a state in bytes; SIZE_MAX when it is not one. */
static size_t state_size(const json_t *state)
{
    const json_t *bytes = json_object_get(state, "bytes");
    size_t        digits = json_string_length(bytes);
    return json_is_string(bytes) && digits % 2 == 0 && digits <= STATE_MAX ? digits / 2 : SIZE_MAX;
}

at_err at_snapshot_read(const json_t *object, at_snapshot **out, at_fail *fail)
{
    const json_t *gather_state = json_object_get(object, "gather_state"); /* if the rule has any */
    size_t        workers = json_array_size(json_object_get(object, "members"));
    size_t        size = state_size(json_object_get(object, "size_state"));
    size_t        gather = gather_state ? state_size(gather_state) : 0;
    bool          valid = workers >= 1 && workers <= AT_WORKERS_MAX;
    *out = NULL;
    if (!valid || size == SIZE_MAX || gather == SIZE_MAX)
        return at_fail_set(fail, AT_ERR_FORMAT, NULL, "not a valid run state");
    size_t       members = workers * sizeof(at_member_snapshot);
    size_t       padded = (size + 63) / 64 * 64; /* the second state is aligned, too */
    at_snapshot *snapshot = calloc(1, sizeof *snapshot + members + padded + gather + 1);
    if (!snapshot) return at_fail_memory(fail);
    snapshot->workers = (uint32_t)workers;
    snapshot->member = (at_member_snapshot *)(void *)(snapshot + 1);
    snapshot->size = (at_rule_state){.size = size, .bytes = (char *)(snapshot + 1) + members};
    snapshot->gather =
        (at_rule_state){.size = gather, .bytes = (char *)snapshot->size.bytes + padded};
    if (read_snapshot(object, snapshot)) {
        *out = snapshot;
        return AT_OK;
    }
    free(snapshot);
    return at_fail_set(fail, AT_ERR_FORMAT, NULL, "not a valid run state");
}
