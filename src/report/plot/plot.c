/* Writes the files of plots and runs gnuplot; plot_script.c writes the scripts. */
#include "report/plot/plot.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "report/plot/gnuplot.h"
#include "report/plot/plot_script.h"
#include "report/summary/table.h"

static bool is_plain_name(const char *name)
{
    if (!isalnum((unsigned char)*name)) return false;
    for (; *name; name++)
        if (!isalnum((unsigned char)*name) && !strchr("-_.", *name)) return false;
    return true;
}

static void write_number(FILE *file, double value)
{
    if (isfinite(value))
        fprintf(file, ",%.10g", value);
    else
        fputs(",NaN", file);
}

/* A name with line breaks would break the rows. */
static void copy_on_one_line(char *line, size_t size, const char *text)
{
    assert(size > 0);
    size_t used = 0;
    for (; *text && used + 1 < size; text++)
        line[used++] = iscntrl((unsigned char)*text) ? ' ' : *text;
    line[used] = '\0';
}

/* The name comes last: whatever it contains, the columns before it are not shifted. */
static void write_rows(FILE *file, const at_series *series, size_t number)
{
    assert(number >= 1);
    char name[256];
    copy_on_one_line(name, sizeof name, series->name);
    for (size_t i = 0; i < series->count; i++) {
        fprintf(file, "%zu", number);
        write_number(file, series->x[i]);
        write_number(file, series->y[i]);
        fputc(',', file);
        at_csv_field(file, name);
        fputc('\n', file);
    }
}

static void write_data(FILE *file, const at_plot *plot)
{
    fputs("series,x,y,name\n", file);
    for (size_t s = 0; s < plot->series_count; s++) write_rows(file, &plot->series[s], s + 1);
}

static char *join(const char *folder, const char *name, const char *ending)
{
    assert(folder && name);
    char *path;
    return asprintf(&path, "%s/%s.%s", folder, name, ending) < 0 ? NULL : path;
}

/* The content of a file: either a plot or a sheet. */
typedef struct content {
    const at_plot  *plot;
    const at_sheet *sheet;
    const char     *name;
} content;

static void write_csv(FILE *file, const content *what)
{
    assert(what->plot);
    write_data(file, what->plot);
}

static void write_gp(FILE *file, const content *what)
{
    if (what->sheet)
        at_sheet_script(file, what->sheet);
    else
        at_plot_script(file, what->plot, what->name);
}

/* Builds a text in memory and writes it once it is complete. */
static at_err write_file(const char *folder, const char *ending, const content *what,
                         void (*write)(FILE *, const content *), at_fail *fail)
{
    char  *bytes = NULL, *path = join(folder, what->name, ending);
    size_t size = 0;
    FILE  *memory = path ? open_memstream(&bytes, &size) : NULL;
    at_err err = AT_OK;
    if (memory) {
        write(memory, what);
        err = at_file_close(memory, path, fail);
        if (!err) err = at_file_write(path, bytes, size, fail);
    } else {
        err = at_fail_memory_for(fail, "for %s", what->name);
    }
    free(bytes);
    free(path);
    return err;
}

/* ---- drawing ------------------------------------------------------------------------------- */

/* The names of all scripts. */
typedef struct scripts {
    const char *name[AT_GNUPLOT_SCRIPTS_MAX];
    size_t      count;
} scripts;

static at_err add_script(scripts *list, const char *folder, const content *what, at_fail *fail)
{
    assert(list->count < AT_GNUPLOT_SCRIPTS_MAX);
    list->name[list->count++] = what->name;
    return write_file(folder, "gp", what, write_gp, fail);
}

static bool is_drawn(const char *folder, const char *name, const char *ending)
{
    char *path = join(folder, name, ending);
    bool  drawn = path && access(path, R_OK) == 0;
    free(path);
    return drawn;
}

static void erase(const char *folder, const char *name, const char *ending)
{
    char *path = join(folder, name, ending);
    if (path) unlink(path);
    free(path);
}

static at_err draw(const scripts *list, const char *folder, at_fail *fail)
{
    at_err err = at_gnuplot_run(folder, list->name, list->count, fail);
    for (size_t i = 0; i < list->count && !err; i++)
        if (!is_drawn(folder, list->name[i], "png") || !is_drawn(folder, list->name[i], "svg"))
            err = at_fail_set(fail, AT_ERR_FAILED, NULL, "%s/%s.gp: gnuplot drew nothing", folder,
                              list->name[i]);
    for (size_t i = 0; i < list->count && err; i++) { /* leave no incomplete images */
        erase(folder, list->name[i], "png");
        erase(folder, list->name[i], "svg");
    }
    return err;
}

static at_err write_plot(const at_named_plot *named, const char *folder, scripts *list,
                         at_fail *fail)
{
    assert(is_plain_name(named->name));
    assert(strlen(named->name) < 200);
    content what = {.plot = &named->plot, .name = named->name};
    if (!at_plot_has_points(&named->plot)) return AT_OK;
    AT_TRY(write_file(folder, "csv", &what, write_csv, fail));
    return named->alone ? add_script(list, folder, &what, fail) : AT_OK;
}

at_err at_plot_write_all(const at_named_plot *plots, size_t plot_count, const at_sheet *sheets,
                         size_t sheet_count, const char *folder, at_fail *fail)
{
    assert(folder);
    scripts list = {.count = 0};
    for (size_t i = 0; i < plot_count; i++) AT_TRY(write_plot(&plots[i], folder, &list, fail));
    for (size_t i = 0; i < sheet_count; i++) {
        assert(is_plain_name(sheets[i].name));
        content what = {.sheet = &sheets[i], .name = sheets[i].name};
        if (at_sheet_has_points(&sheets[i])) AT_TRY(add_script(&list, folder, &what, fail));
    }
    return list.count > 0 ? draw(&list, folder, fail) : AT_OK;
}
