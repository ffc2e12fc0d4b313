/* `anytime runs` lists recorded runs, `anytime runs remove RUN...` removes some, and
 * `anytime show RUN` prints the summary of one again. */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/output.h"
#include "cli/run_names.h"
#include "cli/summary.h"
#include "cli/verbs/verbs.h"
#include "record/run_lock.h"
#include "report/summary/json_value.h"
#include "step/event.h"

enum { COLUMNS_MAX = 32, TERMS_MAX = 16, NAMES_MAX = 256, TEXT_SIZE = 1024 };

static const char columns_default[] =
    "run,state,world,strategy,model,data,workers,steps,seconds,loss,accuracy";

/* ---- values ---------------------------------------------------------------------------------- */

typedef struct listed_run {
    char           *folder;
    const char     *state;
    struct timespec changed;
    json_t         *result; /* NULL: not over */
} listed_run;

/* "test.accuracy" in nested objects; NULL if it is not there. */
static json_t *find_path(json_t *object, const char *path)
{
    char name[128];
    for (;;) {
        size_t length = strcspn(path, ".");
        if (length >= sizeof name) return NULL;
        memcpy(name, path, length);
        name[length] = '\0';
        object = json_object_get(object, name);
        if (!object || !path[length]) return object;
        path += length + 1;
    }
}

/* Short names of nested values. */
static const char *const short_names[][2] = {{"accuracy", "test.accuracy"},
                                             {"loss", "test.loss"},
                                             {"auc", "test.auc"},
                                             {"r2", "test.r2"},
                                             {"rate", "samples_per_second"}};
enum { SHORT_NAMES = sizeof short_names / sizeof *short_names };

static const char *full_name(const char *name)
{
    for (size_t i = 0; i < SHORT_NAMES; i++)
        if (strcmp(name, short_names[i][0]) == 0) return short_names[i][1];
    return name;
}

/* A value of result.json, or of the options of the run, in a new reference; JSON null if there is
 * none. */
static json_t *value_of(const listed_run *run, const char *name)
{
    if (strcmp(name, "run") == 0) return at_json_text(run->folder);
    if (strcmp(name, "state") == 0) return json_string(run->state);
    json_t *value = find_path(run->result, full_name(name));
    if (!value) value = find_path(json_object_get(run->result, "options"), name);
    return value ? json_incref(value) : json_null();
}

static void show_value(const json_t *value, at_text *text)
{
    const char *word = json_string_value(value);
    char       *dumped = NULL;
    if (word)
        at_text_add(text, "%s", word);
    else if (json_is_integer(value))
        at_text_add(text, "%lld", (long long)json_integer_value(value));
    else if (json_is_number(value))
        at_text_add(text, "%.4g", json_number_value(value));
    else if (value && !json_is_null(value) && (dumped = json_dumps(value, JSON_ENCODE_ANY)))
        at_text_add(text, "%s", dumped);
    free(dumped);
}

/* Numbers by size, everything else as text; what is missing comes last. */
static int compare_values(const json_t *a, const json_t *b)
{
    char    one[TEXT_SIZE], two[TEXT_SIZE];
    at_text left = at_text_in(one, sizeof one), right = at_text_in(two, sizeof two);
    if (json_is_null(a) || json_is_null(b)) return json_is_null(a) - json_is_null(b);
    if (json_is_number(a) && json_is_number(b)) {
        double x = json_number_value(a), y = json_number_value(b);
        return (x > y) - (x < y);
    }
    show_value(a, &left);
    show_value(b, &right);
    return strcmp(one, two);
}

/* ---- --where --------------------------------------------------------------------------------- */

typedef struct term {
    char        name[128];
    char        operator[3];
    const char *text;
} term;

typedef struct filter {
    char     copy[TEXT_SIZE];
    term     terms[TERMS_MAX];
    uint32_t count;
} filter;

static at_err parse_term(char *entry, term *out, at_fail *fail)
{
    static const char *const operators[] = {"!=", "<=", ">=", "=", "<", ">"};
    size_t                   length = strcspn(entry, "!<>=");
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        size_t size = strlen(operators[i]);
        if (strncmp(entry + length, operators[i], size) != 0) continue;
        if (length == 0 || length >= sizeof out->name) break;
        memcpy(out->name, entry, length);
        out->name[length] = '\0';
        memcpy(out->operator, operators[i], size + 1);
        out->text = entry + length + size;
        return AT_OK;
    }
    return at_fail_set(fail, AT_ERR_USAGE, "for example --where 'strategy=amb,accuracy>0.8'",
                       "--where: '%s' is not a comparison", entry);
}

static at_err parse_filter(const char *where, filter *out, at_fail *fail)
{
    out->count = 0;
    if (!where) return AT_OK;
    if (strlen(where) >= sizeof out->copy)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "--where is too long");
    memcpy(out->copy, where, strlen(where) + 1);
    char *rest = out->copy, *entry;
    while ((entry = strsep(&rest, ","))) {
        if (out->count == TERMS_MAX)
            return at_fail_set(fail, AT_ERR_USAGE, NULL, "--where: more than %d terms", TERMS_MAX);
        AT_TRY(parse_term(entry, &out->terms[out->count++], fail));
    }
    return AT_OK;
}

static bool holds(const term *t, const listed_run *run)
{
    json_t *value = value_of(run, t->name), *wanted = NULL;
    double  number;
    if (json_is_number(value) && at_text_real(t->text, &number)) wanted = json_real(number);
    if (!wanted) wanted = json_string(t->text);
    bool known = !json_is_null(value);
    int  order = known ? compare_values(value, wanted) : 1;
    json_decref(value);
    json_decref(wanted);
    switch (t->operator[0]) {
    case '=': return known && order == 0;
    case '!': return !known || order != 0;
    case '<': return known && (order < 0 || (order == 0 && t->operator[1]));
    default: return known && (order > 0 || (order == 0 && t->operator[1]));
    }
}

/* ---- the list -------------------------------------------------------------------------------- */

typedef struct run_list {
    listed_run *run;
    size_t      count, found; /* found: before the filter */
    filter      filter;
} run_list;

typedef struct column_list {
    char      copy[TEXT_SIZE];
    at_column column[COLUMNS_MAX];
    size_t    count;
} column_list;

static void free_run(listed_run *run)
{
    free(run->folder);
    json_decref(run->result);
}

static void free_list(run_list *list)
{
    for (size_t i = 0; i < list->count; i++) free_run(&list->run[i]);
    free(list->run);
}

static bool passes(const filter *terms, const listed_run *run)
{
    for (uint32_t i = 0; i < terms->count; i++)
        if (!holds(&terms->terms[i], run)) return false;
    return true;
}

/* Whether it ended before a limit or target was reached. */
static bool was_stopped(json_t *result)
{
    static const at_end early[] = {AT_END_SIGNAL, AT_END_FEW, AT_END_WORKERS, AT_END_DIVERGED,
                                   AT_END_LOST};
    const char         *why = json_string_value(json_object_get(result, "stopped"));
    for (size_t i = 0; why && i < sizeof early / sizeof *early; i++)
        if (strcmp(why, at_end_name[early[i]]) == 0) return true;
    return false;
}

/* A run that cannot be read is listed as damaged. */
static at_err add_run(run_list *list, const char *folder, at_fail *fail)
{
    at_fail    unread;
    listed_run run = {.folder = strdup(folder), .changed = at_run_changed(folder)};
    if (!run.folder) return at_fail_memory(fail);
    at_err err = at_run_result_read(folder, &run.result, &unread);
    run.state = at_run_lock_is_held(folder) ? "running"
                : err == AT_ERR_MISSING     ? "unfinished"
                : err                       ? "damaged"
                : was_stopped(run.result)   ? "stopped"
                                            : "finished";
    listed_run *more = reallocarray(list->run, list->count + 1, sizeof *more);
    if (!more) {
        free_run(&run);
        return at_fail_memory(fail);
    }
    list->run = more;
    list->run[list->count++] = run;
    return AT_OK;
}

/* Adds the run, or the runs in the folder (of comparisons, too). */
static at_err add_folder(run_list *list, const char *path, bool deeper, at_fail *fail)
{
    if (at_run_is_folder(path)) return add_run(list, path, fail);
    DIR   *folder = deeper ? opendir(path) : NULL;
    at_err err = AT_OK;
    if (deeper && !folder && (errno == ENOENT || errno == ENOTDIR))
        return at_fail_set(fail, AT_ERR_MISSING,
                           "`anytime runs` lists runs/, `anytime runs remove RUN` removes a run",
                           "%s: no such folder", path);
    if (deeper && !folder) return at_file_error("list", path, errno, fail);
    for (struct dirent *entry; !err && folder && (entry = readdir(folder));) {
        char    inner[AT_RUN_PATH_SIZE];
        at_text text = at_text_in(inner, sizeof inner);
        at_text_add(&text, "%s/%s", path, entry->d_name);
        if (!text.full && entry->d_name[0] != '.' && at_run_is_folder(inner))
            err = add_run(list, inner, fail);
    }
    if (folder) closedir(folder);
    return err;
}

static int by_change(const void *a, const void *b)
{
    const listed_run *x = a, *y = b;
    if (x->changed.tv_sec != y->changed.tv_sec)
        return x->changed.tv_sec < y->changed.tv_sec ? -1 : 1;
    return (x->changed.tv_nsec > y->changed.tv_nsec) - (x->changed.tv_nsec < y->changed.tv_nsec);
}

static int by_column(const void *a, const void *b, void *column)
{
    const char *name = column;
    bool        falling = *name == '-';
    json_t     *x = value_of(a, name + falling), *y = value_of(b, name + falling);
    int         order = compare_values(x, y);
    bool        missing = json_is_null(x) || json_is_null(y);
    json_decref(x);
    json_decref(y);
    return falling && !missing ? -order : order;
}

/* Removes the runs that do not pass the filter. */
static void apply_filter(run_list *list)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (passes(&list->filter, &list->run[i]))
            list->run[kept++] = list->run[i];
        else
            free_run(&list->run[i]);
    }
    list->count = kept;
}

static at_err find_runs(run_list *list, const at_parsed *parsed, at_fail *fail)
{
    uint32_t first = parsed->words > 0 && strcmp(parsed->word[0], "list") == 0 ? 1 : 0;
    for (uint32_t i = first; i < parsed->words; i++)
        AT_TRY(add_folder(list, parsed->word[i], true, fail));
    if (parsed->words == first && access(AT_RUNS_FOLDER, F_OK) == 0)
        AT_TRY(add_folder(list, AT_RUNS_FOLDER, true, fail));
    list->found = list->count;
    return AT_OK;
}

static void sort_runs(run_list *list, const char *column)
{
    if (list->count == 0) return;
    qsort(list->run, list->count, sizeof *list->run, by_change);
    if (column)
        qsort_r(list->run, list->count, sizeof *list->run, by_column, (void *)(uintptr_t)column);
}

/* ---- names that do not exist ----------------------------------------------------------------- */

static bool has_value(const run_list *list, const char *name)
{
    if (strcmp(name, "run") == 0 || strcmp(name, "state") == 0) return true;
    for (size_t i = 0; i < list->count; i++) {
        json_t *result = list->run[i].result;
        if (find_path(result, full_name(name)) ||
            find_path(json_object_get(result, "options"), name))
            return true;
    }
    return false;
}

/* Names of values, for suggestions. */
static size_t collect_names(json_t *result, const char **names)
{
    const char *key;
    json_t     *value;
    size_t      count = 0;
    for (; count < SHORT_NAMES; count++) names[count] = short_names[count][0];
    json_object_foreach(json_object_get(result, "options"), key, value) if (count < NAMES_MAX)
        names[count++] = key;
    json_object_foreach(result, key, value) if (count < NAMES_MAX) names[count++] = key;
    return count;
}

/* While no run has ended, every name may be right; and so may short names, which values of the
 * model depend on. */
static at_err check_name(const run_list *list, const char *option, const char *name, at_fail *fail)
{
    const char *names[NAMES_MAX];
    char        hint[256] = "";
    at_text     text = at_text_in(hint, sizeof hint);
    json_t     *result = NULL;
    for (size_t i = 0; i < list->count && !result; i++) result = list->run[i].result;
    if (!result || full_name(name) != name || has_value(list, name)) return AT_OK;
    const char *nearest = at_text_nearest(name, names, collect_names(result, names));
    if (nearest) at_text_add(&text, "did you mean %s? ", nearest);
    at_text_add(&text, "names are those in result.json (steps, test.loss, ..) and of options");
    return at_fail_set(fail, AT_ERR_USAGE, hint, "%s: no run has a value '%s'", option, name);
}

static at_err check_names(const run_list *list, const column_list *columns, const char *sort,
                          at_fail *fail)
{
    for (uint32_t i = 0; i < list->filter.count; i++)
        AT_TRY(check_name(list, "--where", list->filter.terms[i].name, fail));
    for (size_t i = 0; i < columns->count; i++)
        AT_TRY(check_name(list, "--columns", columns->column[i].head, fail));
    return sort ? check_name(list, "--sort", sort + (*sort == '-'), fail) : AT_OK;
}

/* ---- printing -------------------------------------------------------------------------------- */

static at_err parse_columns(const char *text, column_list *out, at_fail *fail)
{
    if (!text) text = columns_default;
    if (strlen(text) >= sizeof out->copy)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "--columns is too long");
    memcpy(out->copy, text, strlen(text) + 1);
    char *rest = out->copy, *name;
    out->count = 0;
    while ((name = strsep(&rest, ","))) {
        if (!*name) continue;
        if (out->count == COLUMNS_MAX)
            return at_fail_set(fail, AT_ERR_USAGE, NULL, "--columns: more than %d", COLUMNS_MAX);
        out->column[out->count++] = (at_column){name, AT_ALIGN_LEFT};
    }
    return out->count > 0 ? AT_OK
                          : at_fail_set(fail, AT_ERR_USAGE, "for example --columns run,lr,accuracy",
                                        "--columns is empty");
}

/* Columns of numbers are aligned to the right. */
static void align(column_list *columns, const run_list *list)
{
    for (size_t c = 0; c < columns->count; c++)
        for (size_t i = 0; i < list->count; i++) {
            json_t *value = value_of(&list->run[i], columns->column[c].head);
            if (json_is_number(value)) columns->column[c].align = AT_ALIGN_RIGHT;
            json_decref(value);
        }
}

static at_err print_list(const run_list *list, column_list *columns, at_fail *fail)
{
    align(columns, list);
    at_table *table = at_table_new(columns->column, columns->count);
    for (size_t i = 0; table && i < list->count; i++)
        for (size_t c = 0; c < columns->count; c++) {
            char    cell[TEXT_SIZE] = "";
            at_text text = at_text_in(cell, sizeof cell);
            json_t *value = value_of(&list->run[i], columns->column[c].head);
            show_value(value, &text);
            json_decref(value);
            at_table_add(table, "%s", *cell ? cell : "-");
        }
    return at_print_table_take(table, fail);
}

static at_err print_list_json(const run_list *list, const column_list *columns, at_fail *fail)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < list->count; i++) {
        json_t *row = json_object();
        for (size_t c = 0; c < columns->count; c++)
            json_object_set_new(row, columns->column[c].head,
                                value_of(&list->run[i], columns->column[c].head));
        json_array_append_new(rows, row);
    }
    return at_print_json_take(json_pack("{s:o}", "runs", rows), fail);
}

static at_err list_runs(const at_parsed *parsed, at_fail *fail)
{
    run_list    list = {0};
    column_list columns;
    AT_TRY(parse_columns(parsed->settings.columns, &columns, fail));
    AT_TRY(parse_filter(parsed->settings.where, &list.filter, fail));
    at_err err = find_runs(&list, parsed, fail);
    if (!err) err = check_names(&list, &columns, parsed->settings.sort, fail);
    apply_filter(&list);
    sort_runs(&list, parsed->settings.sort);
    if (!err && parsed->settings.json)
        err = print_list_json(&list, &columns, fail);
    else if (!err && list.count > 0)
        err = print_list(&list, &columns, fail);
    else if (!err && list.found > 0)
        at_print("none of %zu runs matches --where '%s'\n", list.found, parsed->settings.where);
    else if (!err)
        printf("no runs; `anytime train` makes one\n");
    free_list(&list);
    return err;
}

/* ---- removing -------------------------------------------------------------------------------- */

static at_err check_removable(const char *folder, at_fail *fail)
{
    if (!at_run_is_folder(folder))
        return at_fail_set(fail, AT_ERR_MISSING, "`anytime runs` lists the runs in runs/",
                           "%s is not the folder of a run", folder);
    if (at_run_lock_is_held(folder))
        return at_fail_set(fail, AT_ERR_USAGE, "wait until it ends, or stop it first",
                           "%s is in use by a run", folder);
    return AT_OK;
}

/* Checks all of them before the first is removed. */
static at_err remove_runs(const at_parsed *parsed, at_fail *fail)
{
    json_t *removed = json_array();
    at_err  err = AT_OK;
    if (parsed->words < 2)
        err = at_fail_set(fail, AT_ERR_USAGE, "for example: anytime runs remove runs/my-run",
                          "runs remove needs the folders of runs");
    for (uint32_t i = 1; !err && i < parsed->words; i++)
        err = check_removable(parsed->word[i], fail);
    for (uint32_t i = 1; !err && i < parsed->words; i++) {
        const char *folder = parsed->word[i];
        err = at_run_folder_remove(folder, fail);
        if (!err) json_array_append_new(removed, at_json_text(folder));
        if (!err && !parsed->settings.json && !parsed->settings.quiet)
            at_print("removed %s\n", folder);
    }
    if (!err && parsed->settings.json)
        return at_print_json_take(json_pack("{s:o}", "removed", removed), fail);
    json_decref(removed);
    return err;
}

at_err at_verb_runs(at_parsed *parsed, const char *command, at_fail *fail)
{
    (void)command;
    bool removes = parsed->words > 0 && strcmp(parsed->word[0], "remove") == 0;
    return removes ? remove_runs(parsed, fail) : list_runs(parsed, fail);
}

/* ---- show ------------------------------------------------------------------------------------ */

at_err at_verb_show(at_parsed *parsed, const char *command, at_fail *fail)
{
    json_t *result;
    (void)command;
    if (parsed->words != 1)
        return at_fail_set(fail, AT_ERR_USAGE, "for example: anytime show latest",
                           "show needs one run folder");
    AT_TRY(at_run_result_read(parsed->word[0], &result, fail));
    const char *made_by = json_string_value(json_object_get(result, "command"));
    if (!parsed->settings.json && made_by) at_print("%s\n", made_by);
    at_err err = parsed->settings.json
                     ? at_print_json(result, fail)
                     : at_summary_print(result, parsed->word[0], parsed->settings.quiet, fail);
    json_decref(result);
    return err;
}
