#include "data/prep/sparse_prep.h"

#include "base/text.h"
#include "data/formats/csv_columns.h"
#include "data/set/store.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A feature that is scaled: (x - mean) / divisor. With mean 0 zeros stay zeros. */
typedef struct scaled {
    uint32_t feature;
    float    mean, divisor;
} scaled;

typedef struct scaling {
    scaled *item; /* (count) by feature */
    size_t  count;
} scaling;

static bool has_numbers(const at_dataset *train)
{
    at_csv_columns columns;
    bool           found = false;
    if (!train->columns || at_csv_columns_parse(&columns, train->columns, NULL)) return false;
    for (size_t i = 0; i < columns.count; i++)
        found = found || columns.column[i].kind == AT_CSV_NUMBER;
    at_csv_columns_deinit(&columns);
    return found;
}

const char *at_prep_choose(const char *given, const at_dataset *train)
{
    if (given) return strcmp(given, "none") == 0 ? NULL : given;
    return has_numbers(train) ? "normalise" : NULL;
}

void at_prep_note(const char *given, const at_set_pair *pair, const char *data, at_text *notes)
{
    if (given || !at_prep_choose(given, pair->train)) return;
    at_text_add(notes,
                "the numbers of %s are scaled to mean 0 and deviation 1 (--prep none: as they "
                "are)\n",
                data);
}

/* ---- fitting --------------------------------------------------------------------------------- */

typedef struct sums {
    double   sum, squares, largest;
    uint64_t count;
    bool     numbers; /* not only zeros and ones */
} sums;

static void add_all(sums *of, const at_dataset *train)
{
    for (uint64_t i = 0; i < train->starts[train->count]; i++) {
        sums  *s = &of[train->indices[i]];
        double value = (double)train->values[i];
        s->sum += value;
        s->squares += value * value;
        s->largest = fmax(s->largest, fabs(value));
        s->count++;
        s->numbers = s->numbers || value != 1.0;
    }
}

static scaled fit_one(const sums *s, uint32_t feature, uint64_t rows, bool divides)
{
    double mean = s->sum / (double)rows, variance = s->squares / (double)rows - mean * mean;
    double deviation = variance > 0 ? sqrt(variance) : 0;
    bool   centered = !divides && s->count > rows / 2;
    double divisor = divides ? s->largest : deviation > 1e-6 * s->largest ? deviation : s->largest;
    return (scaled){feature, centered ? (float)mean : 0.0f, divisor > 0 ? (float)divisor : 1.0f};
}

static at_err fit(scaling *to, const at_dataset *train, bool divides, at_fail *fail)
{
    sums *of = calloc(train->features, sizeof *of);
    if (!of) return at_fail_memory_for(fail, "for --prep");
    add_all(of, train);
    size_t count = 0;
    for (uint32_t f = 0; f < train->features; f++) count += of[f].numbers;
    to->item = calloc(count + 1, sizeof *to->item);
    for (uint32_t f = 0; to->item && f < train->features; f++)
        if (of[f].numbers) to->item[to->count++] = fit_one(&of[f], f, train->count, divides);
    free(of);
    return to->item ? AT_OK : at_fail_memory_for(fail, "for --prep");
}

/* ---- text ------------------------------------------------------------------------------------ */

static char *write_scaling(const scaling *of)
{
    char  *text = NULL;
    size_t size;
    if (of->count == 0) return strdup("none");
    FILE *to = open_memstream(&text, &size);
    if (!to) return NULL;
    fputs("normalise:", to);
    for (size_t i = 0; i < of->count; i++)
        fprintf(to, "%s%u=%.9g/%.9g", i ? "," : "", of->item[i].feature, (double)of->item[i].mean,
                (double)of->item[i].divisor);
    if (fclose(to) == 0) return text;
    free(text);
    return NULL;
}

static at_err not_a_scaling(const char *steps, at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_USAGE, "use normalise, scale or none",
                       "--prep %.60s: sparse rows can only be scaled", steps);
}

static at_err parse_scaling(scaling *to, const char *text, const char *steps, uint32_t features,
                            at_fail *fail)
{
    size_t room = 1;
    for (const char *c = text; *c; c++) room += *c == ',';
    to->item = calloc(room, sizeof *to->item);
    if (!to->item) return at_fail_memory_for(fail, "for --prep");
    for (; *text; text += *text == ',') {
        unsigned feature;
        int      used = 0;
        scaled  *item = &to->item[to->count++];
        bool     good = to->count <= room &&
                    sscanf(text, "%u=%f/%f%n", &feature, &item->mean, &item->divisor, &used) == 3 &&
                    used > 0 && (text[used] == ',' || text[used] == '\0') && feature < features &&
                    isfinite(item->mean) && item->divisor > 0 && isfinite(item->divisor) &&
                    (to->count == 1 || feature > item[-1].feature);
        if (!good) return not_a_scaling(steps, fail);
        item->feature = feature;
        text += used;
    }
    return AT_OK;
}

static at_err find_scaling(scaling *to, const at_set_pair *pair, const char *steps, at_fail *fail)
{
    const char *colon = strchr(steps, ':');
    size_t      length = colon ? (size_t)(colon - steps) : strlen(steps);
    bool normalises = length == strlen("normalise") && (strncmp(steps, "normalise", length) == 0 ||
                                                        strncmp(steps, "normalize", length) == 0);
    if (normalises && colon)
        return parse_scaling(to, colon + 1, steps, at_dataset_features(pair->train), fail);
    bool divides = strcmp(steps, "scale") == 0;
    if (!normalises && !divides) return not_a_scaling(steps, fail);
    return fit(to, pair->train, divides, fail);
}

/* ---- applying -------------------------------------------------------------------------------- */

/* Writes the scaled numbers of a row to indices and values unless those are NULL; returns how many
 * there are. Both lists are sorted by feature. */
static uint64_t scale_row(const at_dataset *set, uint64_t row, const scaling *by, uint32_t *indices,
                          float *values)
{
    uint64_t i = set->starts[row], end = set->starts[row + 1], count = 0;
    size_t   s = 0;
    while (i < end || s < by->count) {
        uint32_t stored = i < end ? set->indices[i] : UINT32_MAX;
        uint32_t next = s < by->count ? by->item[s].feature : UINT32_MAX;
        uint32_t feature = stored < next ? stored : next;
        float    value = stored == feature ? set->values[i++] : 0.0f;
        if (next == feature) {
            value = (value - by->item[s].mean) / by->item[s].divisor;
            s++;
        }
        if (value == 0.0f) continue;
        if (indices) indices[count] = feature;
        if (values) values[count] = value;
        count++;
    }
    return count;
}

/* A new mapping takes the place of the old one: rows may become longer. */
static at_err apply(at_dataset *set, const scaling *by, at_fail *fail)
{
    uint64_t   numbers = 0;
    at_dataset made = *set;
    assert(set->starts);
    for (uint64_t row = 0; row < set->count; row++) numbers += scale_row(set, row, by, NULL, NULL);
    made.map = NULL;
    made.names = NULL;
    AT_TRY(at_store_reserve_sparse(&made, set->count, numbers, set->features, fail));
    for (uint64_t row = 0; row < set->count; row++) {
        uint64_t at = made.starts[row];
        made.starts[row + 1] = at + scale_row(set, row, by, made.indices + at, made.values + at);
        made.labels[row] = set->labels[row];
    }
    if (set->names) memcpy(made.names, set->names, set->names_size);
    at_store_unmap(set);
    *set = made;
    return at_store_seal(set, fail);
}

at_err at_sparse_prep(at_set_pair *pair, const char *steps, char **fitted, at_fail *fail)
{
    assert(at_dataset_is_sparse(pair->train) && steps);
    scaling by = {0};
    *fitted = NULL;
    at_err err = find_scaling(&by, pair, steps, fail);
    if (!err && !pair->described) err = apply(pair->train, &by, fail);
    if (!err) err = apply(pair->test, &by, fail);
    if (!err) *fitted = write_scaling(&by);
    if (!err && !*fitted) err = at_fail_memory_for(fail, "for --prep");
    free(by.item);
    return err;
}
