/* The totals of a run in a checkpoint. Resource usage is not included: a resumed run has other
 * processes. */
#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "record/histogram.h"
#include "record/log/json_fields.h"
#include "record/tally.h"
#include "step/snapshot.h"

/* 36 years. */
static const at_ns time_max = (at_ns)1 << 60;

static const at_json_field tally_fields[] = {
    {"step_count", AT_JSON_COUNT, offsetof(at_tally, step_count)},
    {"samples_used", AT_JSON_COUNT, offsetof(at_tally, samples_used)},
    {"samples_dropped", AT_JSON_COUNT, offsetof(at_tally, samples_dropped)},
    {"applied_at", AT_JSON_COUNT, offsetof(at_tally, applied_at)},
    {"overshoot_sum", AT_JSON_REAL_OR_NAN, offsetof(at_tally, overshoot_sum)},
    {"overshoot_max", AT_JSON_REAL_OR_NAN, offsetof(at_tally, overshoot_max)},
    {"overshoot_count", AT_JSON_COUNT, offsetof(at_tally, overshoot_count)},
    {"staleness_sum", AT_JSON_REAL_OR_NAN, offsetof(at_tally, staleness_sum)},
    {"staleness_max", AT_JSON_COUNT, offsetof(at_tally, staleness_max)},
    {"staleness_count", AT_JSON_COUNT, offsetof(at_tally, staleness_count)},
    {"loss_recent", AT_JSON_REAL_OR_NAN, offsetof(at_tally, loss_recent)},
    {"loss_fading", AT_JSON_REAL_OR_NAN, offsetof(at_tally, loss_fading)},
    {"loss_weight", AT_JSON_REAL_OR_NAN, offsetof(at_tally, loss_weight)},
    {"loss_total", AT_JSON_REAL_OR_NAN, offsetof(at_tally, loss_total)},
    {"test_count", AT_JSON_COUNT, offsetof(at_tally, test_count)},
    {"test_step", AT_JSON_COUNT, offsetof(at_tally, test_step)},
    {"evaluations", AT_JSON_U32, offsetof(at_tally, evaluations)},
    {"respawns", AT_JSON_U32, offsetof(at_tally, respawns)},
    {"evictions", AT_JSON_U32, offsetof(at_tally, evictions)},
};

static const at_json_field worker_fields[] = {
    {"incarnations", AT_JSON_U32, offsetof(at_worker_tally, incarnations)},
    {"rounds", AT_JSON_COUNT, offsetof(at_worker_tally, rounds)},
    {"samples", AT_JSON_COUNT, offsetof(at_worker_tally, samples)},
    {"samples_used", AT_JSON_COUNT, offsetof(at_worker_tally, samples_used)},
    {"samples_dropped", AT_JSON_COUNT, offsetof(at_worker_tally, samples_dropped)},
    {"compute_ns", AT_JSON_COUNT, offsetof(at_worker_tally, compute_ns)},
    {"sleep_ns", AT_JSON_COUNT, offsetof(at_worker_tally, sleep_ns)},
    {"idle_ns", AT_JSON_COUNT, offsetof(at_worker_tally, idle_ns)},
    {"send_ns", AT_JSON_COUNT, offsetof(at_worker_tally, send_ns)},
    {"useful_ns", AT_JSON_COUNT, offsetof(at_worker_tally, useful_ns)},
};

static const at_json_field link_fields[] = {
    {"losses", AT_JSON_U32, offsetof(at_link_tally, losses)},
    {"round_trip_ns_min", AT_JSON_COUNT, offsetof(at_link_tally, round_trip_ns_min)},
    {"sent_bytes", AT_JSON_COUNT, offsetof(at_link_tally, sent_bytes)},
    {"received_bytes", AT_JSON_COUNT, offsetof(at_link_tally, received_bytes)},
    {"resent_packets", AT_JSON_COUNT, offsetof(at_link_tally, resent_packets)},
};

enum {
    LINK_FIELDS = sizeof link_fields / sizeof *link_fields,
    TALLY_FIELDS = sizeof tally_fields / sizeof *tally_fields,
    WORKER_FIELDS = sizeof worker_fields / sizeof *worker_fields
};

/* ---- writing --------------------------------------------------------------------------------- */

/* JSON has no NaN: unknown values are null. */
static json_t *real_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
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

/* The newest connection is not included: a resumed run has others. */
static json_t *links_json(const at_tally *tally)
{
    json_t *links = json_array();
    for (uint32_t i = 0; i < tally->info->plan->workers_max; i++) {
        json_t *link = json_object();
        at_json_fields_write(link_fields, LINK_FIELDS, &tally->link[i], link);
        json_array_append_new(links, link);
    }
    return links;
}

json_t *at_tally_json(const at_tally *tally, at_ns at)
{
    json_t *object = json_object();
    json_t *workers = json_array(), *test = json_array(), *why = json_array();
    bool    began = tally->began_at != AT_NEVER;
    at_ns   before = began ? at - tally->began_at : tally->before_ns;
    at_ns   before_end = began ? at : tally->before_end; /* resumed, and has not trained since */
    at_json_fields_write(tally_fields, TALLY_FIELDS, tally, object);
    for (uint32_t i = 0; i < tally->info->plan->workers_max; i++) {
        json_t *worker = json_object();
        at_json_fields_write(worker_fields, WORKER_FIELDS, &tally->worker[i], worker);
        json_array_append_new(workers, worker);
    }
    for (int i = 0; i < AT_METRIC_COUNT; i++)
        json_array_append_new(test, real_json(tally->test[i]));
    for (int i = 0; i < AT_DROP_COUNT; i++)
        json_array_append_new(why, json_integer((json_int_t)tally->dropped_why[i]));
    json_object_set_new(object, "before", json_integer(before));
    json_object_set_new(object, "before_end", json_integer(before_end));
    json_object_set_new(object, "workers", workers);
    json_object_set_new(object, "test", test);
    json_object_set_new(object, "dropped_why", why);
    json_object_set_new(object, "steps", histogram_json(tally->steps));
    if (tally->link) json_object_set_new(object, "links", links_json(tally));
    return object;
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool read_histogram(const json_t *object, at_histogram *h)
{
    json_int_t    count, min, max, last = -1;
    const json_t *buckets;
    uint64_t      sum = 0;
    if (json_unpack((json_t *)object, "{s:I, s:F, s:I, s:I, s:o}", "count", &count, "sum", &h->sum,
                    "min", &min, "max", &max, "buckets", &buckets) ||
        count < 0)
        return false;
    for (size_t i = 0; i + 1 < json_array_size(buckets); i += 2) {
        json_int_t index = json_integer_value(json_array_get(buckets, i));
        json_int_t here = json_integer_value(json_array_get(buckets, i + 1));
        if (index <= last || index >= AT_HISTOGRAM_BUCKETS || here < 1) return false;
        if (here > count || sum > (uint64_t)(count - here)) return false;
        h->bucket[index] = (uint64_t)here;
        sum += (uint64_t)here;
        last = index;
    }
    h->count = (uint64_t)count;
    h->min = min;
    h->max = max;
    return sum == h->count && min >= 0 && max >= min;
}

static bool read_links(at_tally *tally, const json_t *links)
{
    uint32_t workers = tally->info->plan->workers_max;
    if (!links) return true;
    tally->link = calloc(workers, sizeof *tally->link);
    for (uint32_t i = 0; tally->link && i < workers && i < json_array_size(links); i++)
        if (at_json_fields_read(link_fields, LINK_FIELDS, json_array_get(links, i),
                                &tally->link[i]))
            return false;
    return tally->link != NULL;
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
    for (uint32_t i = 0; i < tally->info->plan->workers_max && i < json_array_size(workers); i++)
        if (at_json_fields_read(worker_fields, WORKER_FIELDS, json_array_get(workers, i),
                                &tally->worker[i]))
            return false;
    return read_links(tally, json_object_get(state, "links"));
}

/* Whether the times can be continued from `end`: the earlier parts ended by then and lasted no
 * longer; their last step was within them. */
static bool times_valid(const at_tally *tally, at_ns end)
{
    bool has_steps = tally->step_count > 0;
    if (tally->before_end < 0 || tally->before_end > end) return false;
    if (tally->before_ns < 0 || tally->before_ns > tally->before_end) return false;
    if (tally->applied_at < 0 || tally->applied_at > tally->before_end) return false;
    return !has_steps || tally->applied_at >= tally->before_end - tally->before_ns;
}

/* The weight of a fading mean approaches 1; false for NaN. No step, no samples. */
static bool sums_valid(const at_tally *tally)
{
    assert(tally->info);
    if (tally->step_count == 0 && tally->samples_used > 0) return false;
    return tally->loss_weight >= 0 && tally->loss_weight < 1;
}

/* Sets the totals to those of `state`, of a run that goes on at `end` or later. */
static bool read_totals(at_tally *tally, const json_t *state, at_ns end)
{
    memset(tally->steps, 0, sizeof *tally->steps);
    tally->before_ns = json_integer_value(json_object_get(state, "before"));
    tally->before_end = json_integer_value(json_object_get(state, "before_end"));
    return !at_json_fields_read(tally_fields, TALLY_FIELDS, state, tally) &&
           read_lists(tally, state) &&
           read_histogram(json_object_get(state, "steps"), tally->steps) &&
           tally->steps->count == tally->step_count && times_valid(tally, end) && sums_valid(tally);
}

at_err at_tally_resume(at_tally *tally, const json_t *state, at_fail *fail)
{
    assert(tally->step_count == 0);
    const at_snapshot *resume = tally->info->resume;
    bool               valid = read_totals(tally, state, resume ? resume->clock : time_max);
    return valid ? AT_OK : at_fail_set(fail, AT_ERR_FORMAT, NULL, "not valid totals of a run");
}

bool at_tally_totals_valid(const char *text, uint32_t workers, at_ns at)
{
    at_plan      plan = {.workers = workers, .workers_max = workers};
    at_run_info  info = {.plan = &plan};
    at_histogram steps;
    at_tally     tally = {.info = &info, .steps = &steps};
    json_t      *state = json_loads(text, 0, NULL);
    tally.worker = calloc(workers, sizeof *tally.worker);
    bool valid = state && tally.worker && read_totals(&tally, state, at) &&
                 json_is_integer(json_object_get(state, "skipped"));
    free(tally.worker);
    json_decref(state);
    return valid;
}

bool at_tally_totals_gap(const char *text)
{
    json_t *state = json_loads(text, 0, NULL);
    bool    gap = json_integer_value(json_object_get(state, "skipped")) > 0 ||
               json_is_true(json_object_get(state, "skips"));
    json_decref(state);
    return gap;
}

/* Of the earlier parts of a resumed run the tally keeps how long they took. */
void at_tally_replace(at_tally *tally, const char *text, at_ns at)
{
    json_t *state = json_loads(text, 0, NULL);
    at_ns   before_ns = tally->before_ns, before_end = tally->before_end;
    bool    valid = state && read_totals(tally, state, time_max);
    at_ns   shift = at - tally->before_end; /* a reader may have put the parts one after another */
    assert(valid || !state);                /* it was checked; but there may be no memory */
    if (valid) {
        tally->began_at = at - tally->before_ns;
        tally->applied_at += shift;
    }
    tally->before_ns = before_ns;
    tally->before_end = before_end;
    json_decref(state);
}
