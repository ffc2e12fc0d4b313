/* The files of a plot and the making of its pictures; plot_script.c writes what gnuplot reads. */
#include "report/plot.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "report/gnuplot.h"
#include "report/plot_script.h"
#include "report/table.h"

bool at_plot_has_points(const at_plot *plot)
{
    assert(plot->series || plot->series_count == 0);
    for (size_t s = 0; s < plot->series_count; s++)
        for (size_t i = 0; i < plot->series[s].count; i++)
            if (at_plot_is_point(plot, &plot->series[s], i)) return true;
    return false;
}

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

/* A name that spans lines would break the rows. */
static void copy_on_one_line(char *line, size_t size, const char *text)
{
    assert(size > 0);
    size_t used = 0;
    for (; *text && used + 1 < size; text++)
        line[used++] = iscntrl((unsigned char)*text) ? ' ' : *text;
    line[used] = '\0';
}

/* The name comes last: whatever is in it, the columns before it stay where they are. */
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

typedef struct paths {
    char *csv, *gp, *png, *svg;
} paths;

static char *join(const char *folder, const char *name, const char *ending)
{
    assert(folder && name);
    char *path;
    return asprintf(&path, "%s/%s.%s", folder, name, ending) < 0 ? NULL : path;
}

static bool make_paths(paths *p, const char *folder, const char *name)
{
    *p = (paths){.csv = join(folder, name, "csv"),
                 .gp = join(folder, name, "gp"),
                 .png = join(folder, name, "png"),
                 .svg = join(folder, name, "svg")};
    return p->csv && p->gp && p->png && p->svg;
}

static void free_paths(paths *p)
{
    free(p->csv);
    free(p->gp);
    free(p->png);
    free(p->svg);
}

/* Writes what a text in memory holds once it is complete. */
static at_err write_memory(FILE *memory, char **bytes, size_t *size, const char *path,
                           at_fail *fail)
{
    assert(memory);
    at_err err = at_file_close(memory, path, fail);
    if (!err) err = at_file_write(path, *bytes, *size, fail);
    free(*bytes);
    return err;
}

static at_err write_csv(const at_plot *plot, const char *path, at_fail *fail)
{
    char  *bytes = NULL;
    size_t size = 0;
    FILE  *memory = open_memstream(&bytes, &size);
    if (!memory) return at_fail_set(fail, AT_ERR_FAILED, NULL, "%s: not enough memory", path);
    write_data(memory, plot);
    return write_memory(memory, &bytes, &size, path, fail);
}

static at_err write_gp(const at_plot *plot, const char *name, const char *path, at_fail *fail)
{
    char  *bytes = NULL;
    size_t size = 0;
    FILE  *memory = open_memstream(&bytes, &size);
    if (!memory) return at_fail_set(fail, AT_ERR_FAILED, NULL, "%s: not enough memory", path);
    at_plot_script(memory, plot, name);
    return write_memory(memory, &bytes, &size, path, fail);
}

static at_err draw(const paths *p, const char *folder, const char *name, at_fail *fail)
{
    char script[256];
    int  size = snprintf(script, sizeof script, "%s.gp", name);
    assert(size > 0 && (size_t)size < sizeof script);
    at_err err = at_gnuplot_run(folder, script, fail);
    if (!err && (access(p->png, R_OK) || access(p->svg, R_OK)))
        err = at_fail_set(fail, AT_ERR_FAILED, NULL, "%s: gnuplot drew nothing", p->gp);
    if (err) { /* no half-drawn pictures */
        unlink(p->png);
        unlink(p->svg);
    }
    return err;
}

at_err at_plot_write(const at_plot *plot, const char *folder, const char *name, at_fail *fail)
{
    assert(is_plain_name(name));
    assert(strlen(name) < 200);
    if (!at_plot_has_points(plot))
        return at_fail_set(fail, AT_ERR_FORMAT, NULL, "%s: there is no point to plot", name);
    paths  p;
    at_err err = AT_OK;
    if (!make_paths(&p, folder, name))
        err = at_fail_set(fail, AT_ERR_FAILED, NULL, "%s: not enough memory", name);
    if (!err) err = write_csv(plot, p.csv, fail);
    if (!err) err = write_gp(plot, name, p.gp, fail);
    if (!err) err = draw(&p, folder, name, fail);
    free_paths(&p);
    return err;
}
