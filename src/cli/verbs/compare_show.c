/* The comparison as a table and as sentences. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/print.h"
#include "cli/verbs/compare.h"

/* ---- sentences ----------------------------------------------------------------------------- */

static void add_targets(at_text *text, const at_limits *limits)
{
    for (uint32_t i = 0; i < limits->targets; i++)
        at_text_add(text, "%s%s %.4g", i ? " and " : "", at_metric_name[limits->target[i].metric],
                    limits->target[i].value);
}

/* "1.42x sooner than fmb [1.36, 1.48]" */
static void add_ratio(at_text *text, const at_interval *ratio, const char *words, const char *label)
{
    char shown[64];
    at_interval_show(shown, sizeof shown, ratio, 3);
    size_t number = strcspn(shown, " "); /* and behind it the interval, if any */
    at_text_add(text, " %.*sx %s%s%s", (int)number, shown, words, label, shown + number);
    if (at_interval_known(ratio) && ratio->low <= 1 && ratio->high >= 1)
        at_text_add(text, " (no clear difference)");
}

/* "amb reaches accuracy 0.84 1.42x sooner than fmb [1.36, 1.48]" */
static void add_target_part(at_text *text, const at_compare *compare, const at_entry *entry)
{
    at_interval ratio = at_compare_speedup(compare, entry, AT_MEASURE_TARGET);
    if (ratio.count == 0) {
        at_text_add(text, "%s and %s never both reached ", entry->label, compare->entry->label);
        add_targets(text, &compare->limits);
        at_text_add(text, " with the same seed; %s", entry->label);
        return;
    }
    bool sooner = ratio.value >= 1;
    if (!sooner) ratio = (at_interval){1 / ratio.value, 1 / ratio.high, 1 / ratio.low, ratio.count};
    at_text_add(text, "%s reaches ", entry->label);
    add_targets(text, &compare->limits);
    add_ratio(text, &ratio, sooner ? "sooner than " : "later than ", compare->entry->label);
    if (ratio.count < entry->run_count)
        at_text_add(text, " (in the %zu of %u pairs that reached it)", ratio.count,
                    entry->run_count);
    at_text_add(text, " and");
}

const char *at_compare_finding(const at_compare *compare, const at_entry *entry, char *buffer,
                               size_t size)
{
    assert(entry != compare->entry);
    assert(entry->run_count > 0);
    at_interval ratio = at_compare_speedup(compare, entry, AT_MEASURE_RATE);
    at_text     text = at_text_in(buffer, size);
    if (compare->limits.targets > 0) {
        add_target_part(&text, compare, entry);
        at_text_add(&text, " uses");
        add_ratio(&text, &ratio, "the samples per second", "");
    } else {
        at_text_add(&text, "%s uses", entry->label);
        add_ratio(&text, &ratio, "the samples per second of ", compare->entry->label);
    }
    return buffer;
}

/* ---- the table ----------------------------------------------------------------------------- */

static void add_mean(at_table *table, const at_entry *entry, at_measure measure, int digits)
{
    char        text[64];
    at_interval mean = at_compare_mean(entry, measure);
    at_table_add(table, "%s", at_interval_show_half(text, sizeof text, &mean, digits));
}

static void add_speedup(at_table *table, const at_compare *compare, const at_entry *entry,
                        at_measure measure)
{
    char        text[64];
    at_interval ratio = at_compare_speedup(compare, entry, measure);
    bool        first = entry == compare->entry;
    at_table_add(table, "%s", first ? "1" : at_interval_show(text, sizeof text, &ratio, 3));
}

/* Only asynchronous strategies have any; a column of zeros would tell nothing. */
static bool has_staleness(const at_compare *compare)
{
    for (uint32_t i = 0; i < compare->entries; i++)
        if (at_compare_mean(&compare->entry[i], AT_MEASURE_STALENESS).value > 0) return true;
    return false;
}

static void add_row(at_table *table, const at_compare *compare, const at_entry *entry)
{
    char   step[32];
    double step_seconds = at_compare_mean(entry, AT_MEASURE_STEP_SECONDS).value;
    double useful = at_compare_mean(entry, AT_MEASURE_USEFUL).value;
    bool   target = compare->limits.targets > 0;
    if (entry->run_count == 0) return;
    at_table_add(table, "%s", entry->label);
    at_table_add(
        table, "%s",
        isnan(step_seconds) ? "-" : at_text_show_duration(step, sizeof step, AT_SEC(step_seconds)));
    add_mean(table, entry, AT_MEASURE_RATE, 4);
    at_table_add(table, "%.1f", at_compare_mean(entry, AT_MEASURE_BATCH).value);
    at_table_add(table, "%.0f %%", 100 * useful);
    if (has_staleness(compare)) add_mean(table, entry, AT_MEASURE_STALENESS, 3);
    add_mean(table, entry, AT_MEASURE_ACCURACY, 3);
    if (target) add_mean(table, entry, AT_MEASURE_TARGET, 3);
    if (target) at_table_add(table, "%u of %u", at_compare_reached(entry), entry->run_count);
    if (compare->entries == 1) return;
    add_speedup(table, compare, entry, AT_MEASURE_RATE);
    if (target) add_speedup(table, compare, entry, AT_MEASURE_TARGET);
}

static at_table *make_table(const at_compare *compare)
{
    enum { COLUMNS_MAX = 11 };
    bool      target = compare->limits.targets > 0, several = compare->entries > 1;
    size_t    count = 0;
    at_column columns[COLUMNS_MAX];
    columns[count++] = (at_column){"strategy", AT_ALIGN_LEFT};
    columns[count++] = (at_column){"step", AT_ALIGN_RIGHT};
    columns[count++] = (at_column){"samples/s", AT_ALIGN_RIGHT};
    columns[count++] = (at_column){"batch", AT_ALIGN_RIGHT};
    columns[count++] = (at_column){"useful", AT_ALIGN_RIGHT};
    if (has_staleness(compare)) columns[count++] = (at_column){"staleness", AT_ALIGN_RIGHT};
    columns[count++] = (at_column){"accuracy", AT_ALIGN_RIGHT};
    if (target) columns[count++] = (at_column){"target after s", AT_ALIGN_RIGHT};
    if (target) columns[count++] = (at_column){"reached", AT_ALIGN_RIGHT};
    if (several) columns[count++] = (at_column){"samples/s ratio", AT_ALIGN_RIGHT};
    if (several && target) columns[count++] = (at_column){"target speed-up", AT_ALIGN_RIGHT};
    assert(count <= COLUMNS_MAX);
    at_table *table = at_table_new(columns, count);
    for (uint32_t i = 0; table && i < compare->entries; i++)
        add_row(table, compare, &compare->entry[i]);
    return table;
}

at_err at_compare_print(const at_compare *compare, at_fail *fail)
{
    char finding[AT_FINDING_SIZE];
    AT_TRY(at_print_table_take(make_table(compare), fail));
    printf("\n");
    for (uint32_t i = 1; i < compare->entries; i++)
        if (compare->entry[i].run_count > 0)
            printf("%s\n",
                   at_compare_finding(compare, &compare->entry[i], finding, sizeof finding));
    if (compare->entry->run_count < 3)
        printf("no 95 %% intervals: they need 3 repeats\n");
    else
        printf("± and [ ]: 95 %% intervals over %u repeats\n", compare->entry->run_count);
    return AT_OK;
}
