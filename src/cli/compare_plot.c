/* Loss and accuracy against time, one line an entry. */
#include <assert.h>
#include <stdlib.h>

#include "base/text.h"
#include "cli/compare.h"
#include "report/curve.h"
#include "report/plot.h"

static const struct picture {
    const char *name, *column, *label;
} pictures[] = {
    {"loss-vs-time", "loss", "training loss"},
    {"test-loss-vs-time", "test_loss", "test loss"},
    {"accuracy-vs-time", "accuracy", "test accuracy"},
};

/* A run that was told to write no such file has an empty curve. */
static at_err read_run(const at_compare *compare, const at_entry *entry, uint32_t i,
                       const char *column, at_curve *curve, at_fail *fail)
{
    char    path[AT_COMPARE_PATH_SIZE + 128];
    at_fail missing;
    at_text text = at_text_in(path, sizeof path);
    at_text_add(&text, "%s/%s/master_stats.csv", compare->folder,
                json_string_value(json_object_get(json_array_get(entry->runs, i), "folder")));
    assert(!text.full);
    at_err err = at_curve_read(path, column, curve, &missing);
    if (err && err != AT_ERR_MISSING) *fail = missing;
    return err == AT_ERR_MISSING ? AT_OK : err;
}

/* The entry's mean curve over its runs. */
static at_err read_entry(const at_compare *compare, const at_entry *entry, const char *column,
                         at_curve *mean, at_fail *fail)
{
    at_err    err = AT_OK;
    at_curve *runs = calloc(compare->repeats, sizeof *runs);
    if (!runs) return at_fail_set(fail, AT_ERR_FAILED, NULL, "not enough memory");
    for (uint32_t i = 0; i < entry->run_count && !err; i++)
        err = read_run(compare, entry, i, column, &runs[i], fail);
    if (!err) at_curve_mean(runs, entry->run_count, mean);
    free(runs);
    return err;
}

static at_err draw(const at_compare *compare, const struct picture *picture, at_curve *curves,
                   at_text *names, at_fail *fail)
{
    char      title[160];
    at_series series[AT_WORDS_MAX];
    assert(compare->entries <= AT_WORDS_MAX);
    for (uint32_t i = 0; i < compare->entries; i++) {
        AT_TRY(read_entry(compare, &compare->entry[i], picture->column, &curves[i], fail));
        series[i] = (at_series){.name = compare->entry[i].label,
                                .x = curves[i].x,
                                .y = curves[i].y,
                                .count = curves[i].count};
    }
    at_text text = at_text_in(title, sizeof title);
    at_text_add(&text, "%s on %s", compare->parsed->settings.model, compare->parsed->settings.data);
    if (compare->repeats > 1) at_text_add(&text, ", mean of %u runs", compare->repeats);
    at_plot plot = {.title = title,
                    .x_label = "seconds",
                    .y_label = picture->label,
                    .legend = true,
                    .series = series,
                    .series_count = compare->entries};
    if (!at_plot_has_points(&plot)) return AT_OK;
    AT_TRY(at_plot_write(&plot, compare->folder, picture->name, fail));
    at_text_add(names, "%s%s.png", names->used ? " " : "", picture->name);
    return AT_OK;
}

/* Without gnuplot the data and the scripts of all pictures are written nevertheless. */
at_err at_compare_plot(const at_compare *compare, char *names, size_t size, at_fail *fail)
{
    at_text   list = at_text_in(names, size);
    at_fail   first = {0};
    at_curve *curves = calloc(compare->entries, sizeof *curves);
    if (!curves) return at_fail_set(fail, AT_ERR_FAILED, NULL, "not enough memory");
    for (size_t i = 0; i < sizeof pictures / sizeof *pictures && first.err != AT_ERR_IO; i++) {
        at_fail here = {0};
        if (draw(compare, &pictures[i], curves, &list, &here) && !first.err) first = here;
    }
    free(curves);
    if (first.err == AT_ERR_IO) {
        *fail = first;
    } else if (first.err) {
        fprintf(stderr, "anytime: warning: plots are missing: %s\n", first.text);
        if (*first.hint) fprintf(stderr, "  hint: %s\n", first.hint);
    }
    return first.err == AT_ERR_IO ? AT_ERR_IO : AT_OK;
}
