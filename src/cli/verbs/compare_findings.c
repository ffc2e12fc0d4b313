/* What a comparison has found, as sentences. Samples per second are only a means: a sentence begins
 * with the time to the target or, where there is none or it was missed, with what the models were
 * worth at the same time. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "cli/verbs/compare.h"
#include "report/plot/curve.h"

/* ---- at equal time --------------------------------------------------------------------------- */

static const char *folder_of(const at_entry *entry, uint32_t repeat)
{
    return json_string_value(json_object_get(json_array_get(entry->runs, repeat), "folder"));
}

/* A column of the evaluations of a run at this time; NAN where nothing was recorded. */
static at_err value_at(const at_compare *compare, const at_entry *entry, uint32_t repeat,
                       const char *column, double seconds, double *value, at_fail *fail)
{
    char     path[AT_COMPARE_PATH_SIZE + 64];
    at_curve curve;
    at_fail  failed = {0};
    *value = NAN;
    snprintf(path, sizeof path, "%s/%s", compare->folder, folder_of(entry, repeat));
    at_err err = at_curve_read(path, "master_stats.csv",
                               &(at_curve_source){.x = "time", .y = column}, &curve, &failed);
    if (err == AT_ERR_MISSING) return AT_OK;
    if (err) return *fail = failed, err;
    if (curve.count > 0 && curve.x[0] <= seconds) *value = at_curve_at(&curve, seconds);
    return AT_OK;
}

static void set_value(at_entry *entry, uint32_t repeat, at_measure measure, double value)
{
    json_t *run = json_array_get(entry->runs, repeat);
    entry->value[measure][repeat] = value;
    json_object_set_new(run, at_measure_name[measure], at_measure_json(measure, value));
}

/* Accuracy and test loss of a run at this time. */
static at_err values_at(const at_compare *compare, const at_entry *entry, uint32_t repeat,
                        double seconds, double value[2], at_fail *fail)
{
    AT_TRY(value_at(compare, entry, repeat, "accuracy", seconds, &value[0], fail));
    return value_at(compare, entry, repeat, "test_loss", seconds, &value[1], fail);
}

at_err at_compare_equal_time(at_compare *compare, at_entry *entry, at_fail *fail)
{
    const at_entry *first = compare->entry;
    uint32_t        repeat = entry->run_count - 1;
    double          here[2], there[2];
    assert(entry->run_count > 0);
    assert(first->run_count >= entry->run_count); /* the first entry runs first */
    double seconds =
        fmin(entry->value[AT_MEASURE_SECONDS][repeat], first->value[AT_MEASURE_SECONDS][repeat]);
    if (entry == first || isnan(seconds)) return AT_OK;
    AT_TRY(values_at(compare, entry, repeat, seconds, here, fail));
    AT_TRY(values_at(compare, first, repeat, seconds, there, fail));
    set_value(entry, repeat, AT_MEASURE_EQUAL_SECONDS, seconds);
    set_value(entry, repeat, AT_MEASURE_EQUAL_ACCURACY, here[0]);
    set_value(entry, repeat, AT_MEASURE_EQUAL_LOSS, here[1]);
    set_value(entry, repeat, AT_MEASURE_FIRST_ACCURACY, there[0]);
    set_value(entry, repeat, AT_MEASURE_FIRST_LOSS, there[1]);
    return AT_OK;
}

/* ---- quality --------------------------------------------------------------------------------- */

static bool knows(const at_compare *compare, at_measure measure)
{
    for (uint32_t i = 0; i < compare->entries; i++)
        if (!isnan(at_compare_mean(&compare->entry[i], measure).value)) return true;
    return false;
}

at_measure at_compare_quality(const at_compare *compare)
{
    bool loss = !knows(compare, AT_MEASURE_ACCURACY) && knows(compare, AT_MEASURE_TEST_LOSS);
    return loss ? AT_MEASURE_TEST_LOSS : AT_MEASURE_ACCURACY;
}

const char *at_compare_quality_name(const at_compare *compare)
{
    return at_compare_quality(compare) == AT_MEASURE_ACCURACY ? "accuracy" : "test loss";
}

/* Mean difference over pairs of runs; pairs with an unknown value do not count. */
static at_interval difference_of(const double *here, const double *first, uint32_t count)
{
    enum { REPEATS_MAX = 1000 }; /* of --repeats */
    double difference[REPEATS_MAX];
    assert(count <= REPEATS_MAX);
    for (uint32_t i = 0; i < count; i++) difference[i] = here[i] - first[i];
    return at_stats_mean(difference, count);
}

at_equal_time at_compare_at_equal_time(const at_entry *entry, at_measure quality)
{
    bool       loss = quality == AT_MEASURE_TEST_LOSS;
    at_measure here = loss ? AT_MEASURE_EQUAL_LOSS : AT_MEASURE_EQUAL_ACCURACY;
    at_measure first = loss ? AT_MEASURE_FIRST_LOSS : AT_MEASURE_FIRST_ACCURACY;
    assert(loss || quality == AT_MEASURE_ACCURACY);
    return (at_equal_time){
        .seconds = at_compare_mean(entry, AT_MEASURE_EQUAL_SECONDS).value,
        .here = at_compare_mean(entry, here).value,
        .first = at_compare_mean(entry, first).value,
        .difference = difference_of(entry->value[here], entry->value[first], entry->run_count)};
}

/* The same at the end of the runs, which may be at different times. */
static at_equal_time at_the_end(const at_compare *compare, const at_entry *entry)
{
    at_measure      quality = at_compare_quality(compare);
    const at_entry *first = compare->entry;
    return (at_equal_time){.seconds = NAN,
                           .here = at_compare_mean(entry, quality).value,
                           .first = at_compare_mean(first, quality).value,
                           .difference = difference_of(entry->value[quality], first->value[quality],
                                                       entry->run_count)};
}

/* 1: better, -1: worse, 0: no clear difference. */
static int verdict(const at_interval *difference, bool less_is_better)
{
    bool unclear = at_interval_known(difference) && difference->low <= 0 && difference->high >= 0;
    if (unclear || !(difference->value != 0)) return 0;
    return (difference->value > 0) != less_is_better ? 1 : -1;
}

/* ---- sentences ------------------------------------------------------------------------------- */

static void add_targets(at_text *text, const at_limits *limits)
{
    for (uint32_t i = 0; i < limits->targets; i++)
        at_text_add(text, "%s%s %.4g", i ? " and " : "", at_metric_name[limits->target[i].metric],
                    limits->target[i].value);
}

/* "1.42x faster than fmb [1.36, 1.48]" */
static void add_ratio(at_text *text, const at_interval *ratio, const char *words, const char *label)
{
    char shown[64];
    at_interval_show(shown, sizeof shown, ratio, 3);
    size_t number = strcspn(shown, " "); /* followed by the interval, if any */
    at_text_add(text, " %.*sx %s%s%s", (int)number, shown, words, label, shown + number);
    if (at_interval_known(ratio) && ratio->low <= 1 && ratio->high >= 1)
        at_text_add(text, " (no clear difference)");
}

/* "1.42x faster than fmb [1.36, 1.48]", or "as fast as fmb (speedup 1.00 [0.99, 1.01])" */
static void add_speed(at_text *text, at_interval ratio, const char *label)
{
    char shown[64];
    bool faster = ratio.value >= 1;
    if (fabs(ratio.value - 1) < 0.005) { /* it would be shown as 1.00x faster */
        at_text_add(text, " as fast as %s (speedup %s)", label,
                    at_interval_show(shown, sizeof shown, &ratio, 3));
        return;
    }
    if (!faster) ratio = (at_interval){1 / ratio.value, 1 / ratio.high, 1 / ratio.low, ratio.count};
    add_ratio(text, &ratio, faster ? "faster than " : "slower than ", label);
}

/* "amb reaches accuracy 0.84 1.42x faster than fmb [1.36, 1.48]" */
static void add_target_part(at_text *text, const at_compare *compare, const at_entry *entry)
{
    const at_entry *first = compare->entry;
    at_interval     ratio = at_compare_speedup(compare, entry, AT_MEASURE_TARGET);
    if (ratio.count == 0) {
        at_text_add(text, "%s and %s never both reached ", entry->label, first->label);
        add_targets(text, &compare->limits);
        at_text_add(text, " with the same seed (%u and %u of %u runs)", at_compare_reached(entry),
                    at_compare_reached(first), entry->run_count);
        return;
    }
    at_text_add(text, "%s reaches ", entry->label);
    add_targets(text, &compare->limits);
    add_speed(text, ratio, first->label);
    if (ratio.count < entry->run_count)
        at_text_add(text, " where both do, which is in %zu of %u pairs of runs", ratio.count,
                    entry->run_count);
}

/* " at equal time (3.2s)", or " at the end (after 1.1s against 3.2s)" */
static void add_time(at_text *text, const at_compare *compare, const at_entry *entry,
                     const at_equal_time *equal)
{
    char   time[32], other[32];
    double here = at_compare_mean(entry, AT_MEASURE_SECONDS).value;
    double first = at_compare_mean(compare->entry, AT_MEASURE_SECONDS).value;
    if (!isnan(equal->seconds)) {
        at_text_add(text, " at equal time (%s)",
                    at_text_show_duration(time, sizeof time, AT_SEC(equal->seconds)));
        return;
    }
    at_text_add(text, " at the end");
    if (isnan(here) || isnan(first)) return;
    at_text_add(text, " (after %s against %s)",
                at_text_show_duration(time, sizeof time, AT_SEC(here)),
                at_text_show_duration(other, sizeof other, AT_SEC(first)));
}

/* Whether the interval of a difference excludes more than 2 % in either direction. */
static bool is_narrow(const at_equal_time *equal)
{
    double most = 0.02 * fabs(equal->first);
    if (!at_interval_known(&equal->difference)) return true;
    return equal->difference.low >= -most && equal->difference.high <= most;
}

/* "amb is less accurate than fmb at equal time (3.2s): 0.820 against 0.848, a difference of -0.028
 * [-0.031, -0.025]". Returns the verdict, 0 also when nothing is known (and nothing is added). */
static int add_quality(at_text *text, const at_compare *compare, const at_entry *entry)
{
    static const char *const words[2][3] = {
        {"is less accurate than", "is about as accurate as", "is more accurate than"},
        {"has a higher test loss than", "has about the same test loss as",
         "has a lower test loss than"}};
    static const char *const unclear[2] = {"is neither clearly more nor clearly less accurate than",
                                           "has neither a clearly higher nor a clearly lower test "
                                           "loss than"};
    char                     shown[64];
    at_measure               quality = at_compare_quality(compare);
    bool                     loss = quality == AT_MEASURE_TEST_LOSS;
    at_equal_time            equal = at_compare_at_equal_time(entry, quality);
    if (isnan(equal.difference.value)) equal = at_the_end(compare, entry);
    if (isnan(equal.difference.value)) return 0;
    int         better = verdict(&equal.difference, loss);
    const char *is = words[loss][better + 1];
    if (better == 0 && !is_narrow(&equal)) is = unclear[loss];
    at_text_add(text, "%s %s %s", entry->label, is, compare->entry->label);
    add_time(text, compare, entry, &equal);
    at_text_add(text, ": %.4g against %.4g", equal.here, equal.first);
    if (at_interval_known(&equal.difference))
        at_text_add(text, ", a difference of %s",
                    at_interval_show(shown, sizeof shown, &equal.difference, 3));
    return better;
}

const char *at_compare_finding(const at_compare *compare, const at_entry *entry, char *buffer,
                               size_t size)
{
    assert(entry != compare->entry);
    assert(entry->run_count > 0);
    at_interval ratio = at_compare_speedup(compare, entry, AT_MEASURE_RATE);
    at_text     text = at_text_in(buffer, size);
    bool        target = compare->limits.targets > 0;
    bool        missed = target && (at_compare_reached(entry) < entry->run_count ||
                             at_compare_reached(compare->entry) < compare->entry->run_count);
    int         better = 0;
    if (target) add_target_part(&text, compare, entry);
    if (missed) at_text_add(&text, "; ");
    size_t before = strlen(buffer);
    if (!target || missed) better = add_quality(&text, compare, entry);
    if (strlen(buffer) == before) { /* no quality to speak of: the rate is all there is */
        at_text_add(&text, "%s uses", before > 0 && !missed ? " and" : entry->label);
        add_ratio(&text, &ratio, "the samples per second of ", compare->entry->label);
        return buffer;
    }
    at_text_add(&text, "%s uses", better < 0 && ratio.value > 1 ? ", although it" : "; it");
    add_ratio(&text, &ratio, "the samples per second", "");
    return buffer;
}
