/* The totals of a run in a checkpoint. Resource usage is not included: a resumed run has other
 * processes. */
#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "record/histogram.h"
#include "record/tally.h"

typedef enum type { U64, U32, NS, REAL } type;

typedef struct field {
    const char *name;
    type        type;
    size_t      offset;
} field;

static const field tally_fields[] = {
    {"step_count", U64, offsetof(at_tally, step_count)},
    {"samples_used", U64, offsetof(at_tally, samples_used)},
    {"samples_dropped", U64, offsetof(at_tally, samples_dropped)},
    {"applied_at", NS, offsetof(at_tally, applied_at)},
    {"overshoot_sum", REAL, offsetof(at_tally, overshoot_sum)},
    {"overshoot_max", REAL, offsetof(at_tally, overshoot_max)},
    {"overshoot_count", U64, offsetof(at_tally, overshoot_count)},
    {"staleness_sum", REAL, offsetof(at_tally, staleness_sum)},
    {"staleness_max", U64, offsetof(at_tally, staleness_max)},
    {"staleness_count", U64, offsetof(at_tally, staleness_count)},
    {"loss_recent", REAL, offsetof(at_tally, loss_recent)},
    {"loss_fading", REAL, offsetof(at_tally, loss_fading)},
    {"loss_weight", REAL, offsetof(at_tally, loss_weight)},
    {"loss_total", REAL, offsetof(at_tally, loss_total)},
    {"test_count", U64, offsetof(at_tally, test_count)},
    {"test_step", U64, offsetof(at_tally, test_step)},
    {"evaluations", U32, offsetof(at_tally, evaluations)},
    {"respawns", U32, offsetof(at_tally, respawns)},
    {"evictions", U32, offsetof(at_tally, evictions)},
};

static const field worker_fields[] = {
    {"incarnations", U32, offsetof(at_worker_tally, incarnations)},
    {"rounds", U64, offsetof(at_worker_tally, rounds)},
    {"samples", U64, offsetof(at_worker_tally, samples)},
    {"samples_used", U64, offsetof(at_worker_tally, samples_used)},
    {"samples_dropped", U64, offsetof(at_worker_tally, samples_dropped)},
    {"compute_ns", NS, offsetof(at_worker_tally, compute_ns)},
    {"sleep_ns", NS, offsetof(at_worker_tally, sleep_ns)},
    {"idle_ns", NS, offsetof(at_worker_tally, idle_ns)},
    {"send_ns", NS, offsetof(at_worker_tally, send_ns)},
    {"useful_ns", NS, offsetof(at_worker_tally, useful_ns)},
};

enum {
    TALLY_FIELDS = sizeof tally_fields / sizeof *tally_fields,
    WORKER_FIELDS = sizeof worker_fields / sizeof *worker_fields
};

/* ---- writing --------------------------------------------------------------------------------- */

/* JSON has no NaN: unknown values are null. */
static json_t *real_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *field_json(const field *f, const void *base)
{
    const char *place = (const char *)base + f->offset;
    uint32_t    u32;
    int64_t     wide;
    double      real;
    switch (f->type) {
    case U32: memcpy(&u32, place, sizeof u32); return json_integer(u32);
    case U64:
    case NS: memcpy(&wide, place, sizeof wide); return json_integer(wide);
    case REAL: memcpy(&real, place, sizeof real); return real_json(real);
    }
    assert(!"unreachable");
    return NULL;
}

static json_t *fields_json(const field *fields, size_t count, const void *base)
{
    json_t *object = json_object();
    for (size_t i = 0; i < count; i++)
        json_object_set_new(object, fields[i].name, field_json(&fields[i], base));
    return object;
}

/* Only non-empty buckets: [index, count, index, count, ..]. */
static json_t *histogram_json(const at_histogram *h)
{
    json_t *buckets = json_array();
    for (uint32_t i = 0; i < AT_HISTOGRAM_BUCKETS; i++) {
        if (h->bucket[i] == 0) continue;
        json_array_append_new(buckets, json_integer(i));
        json_array_append_new(buckets, json_integer((json_int_t)h->bucket[i]));
    }
    return json_pack("{s:I, s:f, s:I, s:I, s:o}", "count", (json_int_t)h->count, "sum", h->sum,
                     "min", (json_int_t)h->min, "max", (json_int_t)h->max, "buckets", buckets);
}

json_t *at_tally_json(const at_tally *tally, at_ns at)
{
    json_t *object = fields_json(tally_fields, TALLY_FIELDS, tally);
    json_t *workers = json_array(), *test = json_array(), *why = json_array();
    bool    began = tally->began_at != AT_NEVER;
    at_ns   before = began ? at - tally->began_at : tally->before_ns;
    for (uint32_t i = 0; i < tally->info->plan->workers; i++)
        json_array_append_new(workers,
                              fields_json(worker_fields, WORKER_FIELDS, &tally->worker[i]));
    for (int i = 0; i < AT_METRIC_COUNT; i++)
        json_array_append_new(test, real_json(tally->test[i]));
    for (int i = 0; i < AT_DROP_COUNT; i++)
        json_array_append_new(why, json_integer((json_int_t)tally->dropped_why[i]));
    json_object_set_new(object, "before", json_integer(before));
    json_object_set_new(object, "before_end", json_integer(at));
    json_object_set_new(object, "workers", workers);
    json_object_set_new(object, "test", test);
    json_object_set_new(object, "dropped_why", why);
    json_object_set_new(object, "steps", histogram_json(tally->steps));
    return object;
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool read_field(const field *f, const json_t *value, void *base)
{
    char    *place = (char *)base + f->offset;
    int64_t  wide = json_integer_value(value);
    uint32_t u32 = (uint32_t)wide;
    double   real = json_is_null(value) ? NAN : json_number_value(value);
    switch (f->type) {
    case U32: memcpy(place, &u32, sizeof u32); return json_is_integer(value) && wide == u32;
    case U64:
    case NS: memcpy(place, &wide, sizeof wide); return json_is_integer(value) && wide >= 0;
    case REAL:
        memcpy(place, &real, sizeof real);
        return json_is_null(value) || json_is_number(value);
    }
    return false;
}

static bool read_fields(const field *fields, size_t count, const json_t *object, void *base)
{
    for (size_t i = 0; i < count; i++)
        if (!read_field(&fields[i], json_object_get(object, fields[i].name), base)) return false;
    return true;
}

static bool read_histogram(const json_t *object, at_histogram *h)
{
    json_int_t    count, min, max;
    const json_t *buckets;
    uint64_t      sum = 0;
    if (json_unpack((json_t *)object, "{s:I, s:F, s:I, s:I, s:o}", "count", &count, "sum", &h->sum,
                    "min", &min, "max", &max, "buckets", &buckets))
        return false;
    for (size_t i = 0; i + 1 < json_array_size(buckets); i += 2) {
        json_int_t index = json_integer_value(json_array_get(buckets, i));
        json_int_t here = json_integer_value(json_array_get(buckets, i + 1));
        if (index < 0 || index >= AT_HISTOGRAM_BUCKETS || here < 1) return false;
        h->bucket[index] = (uint64_t)here;
        sum += (uint64_t)here;
    }
    h->count = (uint64_t)count;
    h->min = min;
    h->max = max;
    return sum == h->count && min >= 0 && max >= min;
}

static bool read_lists(at_tally *tally, const json_t *state)
{
    const json_t *test = json_object_get(state, "test");
    const json_t *why = json_object_get(state, "dropped_why");
    const json_t *workers = json_object_get(state, "workers");
    for (size_t i = 0; i < AT_METRIC_COUNT && i < json_array_size(test); i++) {
        const json_t *value = json_array_get(test, i);
        tally->test[i] = json_is_number(value) ? json_number_value(value) : NAN;
    }
    for (size_t i = 0; i < AT_DROP_COUNT && i < json_array_size(why); i++)
        tally->dropped_why[i] = (uint64_t)json_integer_value(json_array_get(why, i));
    for (uint32_t i = 0; i < tally->info->plan->workers && i < json_array_size(workers); i++)
        if (!read_fields(worker_fields, WORKER_FIELDS, json_array_get(workers, i),
                         &tally->worker[i]))
            return false;
    return true;
}

at_err at_tally_resume(at_tally *tally, const json_t *state, at_fail *fail)
{
    assert(tally->step_count == 0);
    tally->before_ns = json_integer_value(json_object_get(state, "before"));
    tally->before_end = json_integer_value(json_object_get(state, "before_end"));
    bool valid = read_fields(tally_fields, TALLY_FIELDS, state, tally) &&
                 read_lists(tally, state) &&
                 read_histogram(json_object_get(state, "steps"), tally->steps) &&
                 tally->steps->count == tally->step_count && tally->before_ns >= 0;
    return valid ? AT_OK : at_fail_set(fail, AT_ERR_FORMAT, NULL, "not valid totals of a run");
}
