/* No text from outside can become a command: titles and names enter the script as single-quoted
 * text, in which gnuplot expands nothing; data stay in a file of numbers; file names are chosen by
 * the program; and gnuplot is started without a shell. */
#include "report/plot/plot_script.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>

#include "report/summary/utf8.h"

enum {
    POINTS_DRAWN_MAX = 4000, /* per series: more would only make the files larger */
    POINTS_MARKED_MAX = 40,  /* a series with at most this many points has point markers */
    DECADES_FINE_MAX = 3     /* up to here a logarithmic axis has ticks at 1, 2 and 5 */
};

/* The Okabe-Ito palette, safe for color-blind readers, pale colors last. */
static const char *const COLORS[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                     "#E69F00", "#56B4E9", "#000000"};
enum { COLOR_COUNT = sizeof COLORS / sizeof *COLORS };

static const double VALUE_MAX = 1e100; /* so that ranges and margins stay finite */
static const double INTEGER_WIDTH_MIN = 6;
static const double LOG_RATIO_MIN = 5; /* below this a logarithmic axis would have no ticks */

static bool can_draw(double value, bool log_axis)
{
    if (log_axis && value < 1 / VALUE_MAX) return false;
    return fabs(value) <= VALUE_MAX; /* also false for NAN */
}

static bool is_point(const at_plot *plot, const at_series *series, size_t i)
{
    assert(i < series->count);
    return can_draw(series->x[i], plot->x_log) && can_draw(series->y[i], plot->y_log);
}

static bool has_points(const at_plot *plot, size_t index)
{
    for (size_t i = 0; i < plot->series[index].count; i++)
        if (is_point(plot, &plot->series[index], i)) return true;
    return false;
}

bool at_plot_has_points(const at_plot *plot)
{
    assert(plot->series || plot->series_count == 0);
    for (size_t s = 0; s < plot->series_count; s++)
        if (has_points(plot, s)) return true;
    return false;
}

bool at_sheet_has_points(const at_sheet *sheet)
{
    assert(sheet->plots || sheet->count == 0);
    for (size_t i = 0; i < sheet->count; i++)
        if (at_plot_has_points(&sheet->plots[i].plot)) return true;
    return false;
}

/* Writes a quoted text. Invalid UTF-8 (which gnuplot draws as garbage), line breaks and quotes must
 * not pass. gnuplot misreads a doubled quote at the very beginning, so quotes become typographic
 * ones: then nothing can end the text. */
static void write_quoted(FILE *file, const char *text)
{
    assert(text);
    fputc('\'', file);
    while (*text) {
        uint32_t code;
        size_t   size = at_utf8_next(text, &code);
        if (*text == '\n' || *text == '\t')
            fputc(' ', file);
        else if (code == '\'')
            fputs("\u2019", file);
        else if (code == '?')
            fputc('?', file);
        else
            fwrite(text, 1, size, file);
        text += size;
    }
    fputc('\'', file);
}

typedef struct span {
    double low, high;
} span;

static void widen_to(span *s, double value)
{
    assert(isfinite(value));
    s->low = fmin(s->low, value);
    s->high = fmax(s->high, value);
}

static void measure(const at_plot *plot, span *x, span *y)
{
    *x = *y = (span){INFINITY, -INFINITY};
    for (size_t s = 0; s < plot->series_count; s++)
        for (size_t i = 0; i < plot->series[s].count; i++) {
            if (!is_point(plot, &plot->series[s], i)) continue;
            widen_to(x, plot->series[s].x[i]);
            widen_to(y, plot->series[s].y[i]);
        }
    assert(x->low <= x->high);
    assert(y->low <= y->high);
}

/* Adds a margin to the data; an axis that nearly reaches 0 begins there. */
static span range_linear(span data, double margin)
{
    assert(margin > 0);
    double width = data.high - data.low;
    if (data.high == 0 && width == 0) return (span){-margin, 1};
    if (width <= 1e-9 * fabs(data.high)) /* constant: do not magnify rounding errors */
        return (span){fmin(0, 1.5 * data.high), fmax(0, 1.5 * data.high)};
    span range = {data.low - margin * width, data.high + margin * width};
    if (data.low >= 0 && data.low < width / 3) range.low = 0;
    return range;
}

static span range_log(span data, double margin)
{
    assert(data.low > 0);
    double factor = pow(fmax(data.high / data.low, 1.5), margin);
    return (span){data.low / factor, data.high * factor};
}

/* Ticks at 1, 2 and 5 times powers of ten. */
static void write_fine_ticks(FILE *file, char axis, span range)
{
    const char *comma = "";
    fprintf(file, "set %ctics (", axis);
    assert(range.low > 0);
    int first = (int)floor(log10(range.low)), last = (int)floor(log10(range.high));
    for (int power = first; power <= last; power++)
        for (int digit = 1; digit <= 5; digit += digit == 1 ? 1 : 3) {
            double tick = digit * pow(10, power);
            if (tick < range.low || tick > range.high) continue;
            fprintf(file, "%s'%g' %.10g", comma, tick, tick);
            comma = ", ";
        }
    fputs(")\n", file);
}

/* ---- units of time ------------------------------------------------------------------------- */

typedef struct unit {
    const char *name;
    double      per_second;
    const char *factor; /* the same, for the script */
} unit;

static unit unit_for(double seconds)
{
    if (seconds >= 1 || seconds <= 0) return (unit){"s", 1, "1"};
    return seconds >= 1e-3 ? (unit){"ms", 1e3, "1e3"} : (unit){"\u00b5s", 1e6, "1e6"};
}

static unit rate_of(unit time)
{
    if (time.per_second == 1) return (unit){"1/s", 1, "1"};
    return time.per_second == 1e3 ? (unit){"1/ms", 1e-3, "1e-3"}
                                  : (unit){"1/\u00b5s", 1e-6, "1e-6"};
}

/* The units of both axes; factor 1 for an axis that is not time. */
static void choose_units(const at_plot *plot, unit *x, unit *y)
{
    span x_data, y_data;
    *x = *y = (unit){NULL, 1, "1"};
    if (!at_plot_has_points(plot)) return;
    measure(plot, &x_data, &y_data);
    if (plot->x_time) *x = unit_for(x_data.high);
    if (plot->y_time) *y = unit_for(y_data.high);
    if (plot->y_rate) *y = rate_of(*x);
}

/* ---- frame --------------------------------------------------------------------------------- */

/* Shows at least a few integers, so that a single one does not fill the axis. */
static span write_integer_ticks(FILE *file, span data)
{
    double missing = INTEGER_WIDTH_MIN - (data.high - data.low);
    if (missing < 0) return data;
    fputs("set xtics 1\n", file);
    double below = data.low >= -0.5 ? fmin(missing / 2, data.low + 0.5) : missing / 2;
    return (span){data.low - below, data.high + missing - below};
}

static span write_axis(FILE *file, char axis, span data, bool log_axis, double margin)
{
    if (log_axis && data.high / data.low < LOG_RATIO_MIN)
        log_axis = false; /* hardly differs from a linear one */
    span range = log_axis ? range_log(data, margin) : range_linear(data, margin);
    assert(range.low < range.high);
    fprintf(file, "set %crange [%.10g:%.10g]\n", axis, range.low, range.high);
    if (!log_axis) return range;
    fprintf(file, "set logscale %c\n", axis);
    if (log10(range.high / range.low) <= DECADES_FINE_MAX) write_fine_ticks(file, axis, range);
    return range;
}

/* Vertical lines at the means; outside the axes they would cross other elements. */
static void write_mean_lines(FILE *file, const at_plot *plot, span x, double factor)
{
    for (size_t s = 0; plot->mean && s < plot->series_count; s++) {
        double at = plot->mean[s] * factor;
        if (!(at >= x.low && at <= x.high)) continue; /* also NAN */
        fprintf(file,
                "set arrow from first %.10g, graph 0 to first %.10g, graph 1 nohead front "
                "linewidth 1.6 dashtype 2 linecolor rgb '%s'\n",
                at, at, COLORS[s % COLOR_COUNT]);
    }
}

static void write_axes(FILE *file, const at_plot *plot, unit x_unit, unit y_unit)
{
    span x, y;
    measure(plot, &x, &y);
    x = (span){x.low * x_unit.per_second, x.high * x_unit.per_second};
    y = (span){y.low * y_unit.per_second, y.high * y_unit.per_second};
    if (plot->x_whole) x = write_integer_ticks(file, x);
    x = write_axis(file, 'x', x, plot->x_log, plot->kind == AT_PLOT_STEPS ? 0.03 : 0.01);
    write_axis(file, 'y', y, plot->y_log, 0.04);
    write_mean_lines(file, plot, x, x_unit.per_second);
}

static void write_text(FILE *file, const char *setting, const char *text, const char *font)
{
    assert(setting && font);
    if (!text) return;
    fprintf(file, "set %s ", setting);
    write_quoted(file, text);
    fprintf(file, " noenhanced %s\n", font);
}

/* "time (ms)" */
static void write_label(FILE *file, const char *setting, const char *text, unit u)
{
    char label[256];
    if (!text) return;
    snprintf(label, sizeof label, u.name ? "%s (%s)" : "%s", text, u.name);
    write_text(file, setting, label, "");
}

/* A plot without points shows a note and no ticks. */
static void write_note(FILE *file, const char *note)
{
    fputs("set xrange [0:1]\nset yrange [0:1]\nunset tics\n", file);
    write_text(file, "label 1", note, "at graph 0.5, graph 0.5 center textcolor rgb '#777777'");
}

static void write_frame(FILE *file, const at_plot *plot, const char *title)
{
    unit x, y;
    choose_units(plot, &x, &y);
    write_text(file, "title", title, "font ',15' offset 0,-0.4");
    write_label(file, "xlabel", plot->x_label, x);
    write_label(file, "ylabel", plot->y_label, y);
    if (at_plot_has_points(plot))
        write_axes(file, plot, x, y);
    else
        write_note(file, plot->note);
}

static void write_begin(FILE *file, const char *comment)
{
    fprintf(file, "# %s\n", comment);
    fputs("reset\n"
          "set encoding utf8\n"
          "set datafile separator ','\n"
          "set datafile missing NaN\n",
          file);
}

/* ---- data ---------------------------------------------------------------------------------- */

/* Color and dashes: series of the same color have different dashes. */
static void write_style(FILE *file, size_t index)
{
    fprintf(file, " linewidth 2.6 dashtype %zu linecolor rgb '%s'", index / COLOR_COUNT + 1,
            COLORS[index % COLOR_COUNT]);
}

/* Selects the rows of one series from the file of all series; other rows become NaN. */
static void write_rows_of(FILE *file, const at_plot *plot, const char *name, size_t index)
{
    assert(index < plot->series_count);
    unit x, y;
    choose_units(plot, &x, &y);
    fprintf(file, "  '%s.csv' skip 1 every %zu using ($1 == %zu%s%s ? $2 * %s : NaN):", name,
            plot->series[index].count / POINTS_DRAWN_MAX + 1, index + 1,
            plot->x_log ? " && $2 > 0" : "", plot->y_log ? " && $3 > 0" : "", x.factor);
    if (y.per_second == 1)
        fputs("3", file); /* a bare column may be missing */
    else
        fprintf(file, "($3 * %s)", y.factor);
}

static void write_line(FILE *file, const at_plot *plot, const char *name, size_t index)
{
    const at_series *series = &plot->series[index];
    bool             marked = series->count <= POINTS_MARKED_MAX;
    write_rows_of(file, plot, name, index);
    fputs(" title ", file);
    write_quoted(file, series->name);
    fputs(marked ? " with linespoints" : " with lines", file);
    write_style(file, index);
    if (marked) fprintf(file, " pointtype %zu pointsize 0.9", 5 + 2 * (index % 5));
}

/* A transparent area, so that areas behind it stay visible, with its outline on top. */
static void write_steps(FILE *file, const at_plot *plot, const char *name, size_t index)
{
    write_rows_of(file, plot, name, index);
    fprintf(file,
            " notitle with fillsteps fillstyle transparent solid %.2f noborder "
            "linecolor rgb '%s', \\\n",
            fmax(0.05, 0.5 / (double)(plot->series_count + 1)), COLORS[index % COLOR_COUNT]);
    write_rows_of(file, plot, name, index);
    fputs(" title ", file);
    write_quoted(file, plot->series[index].name);
    fputs(" with steps", file);
    write_style(file, index);
}

static void write_mean_style(FILE *file)
{
    fputs(", \\\n  NaN title 'mean' with lines linewidth 1.6 dashtype 2 linecolor rgb '#666666'",
          file);
}

static void write_plot(FILE *file, const at_plot *plot, const char *name)
{
    const char *comma = "";
    fputs("plot \\\n", file);
    for (size_t s = 0; s < plot->series_count; s++) {
        if (!has_points(plot, s)) continue; /* gnuplot rejects a series without points */
        fputs(comma, file);
        if (plot->kind == AT_PLOT_STEPS)
            write_steps(file, plot, name, s);
        else
            write_line(file, plot, name, s);
        comma = ", \\\n";
    }
    if (*comma && plot->mean) write_mean_style(file);
    fputs(*comma ? "\n" : "  NaN notitle\n", file);
}

static void write_legend(FILE *file, const at_plot *plot)
{
    assert(plot->series_count > 0);
    fputs("plot \\\n", file);
    for (size_t s = 0; s < plot->series_count; s++) {
        fputs("  NaN title ", file);
        write_quoted(file, plot->series[s].name);
        fputs(" with lines", file);
        write_style(file, s);
        if (s + 1 < plot->series_count) fputs(", \\\n", file);
    }
    if (plot->mean) write_mean_style(file);
    fputc('\n', file);
}

/* ---- single plot --------------------------------------------------------------------------- */

static void write_layout(FILE *file, const at_plot *plot)
{
    fputs("set border 3 linewidth 1.2 linecolor rgb '#666666'\n"
          "set tics nomirror out scale 0.6 textcolor rgb '#333333'\n"
          "set grid linetype 1 linewidth 0.8 linecolor rgb '#dddddd'\n"
          "set rmargin 4\n",
          file);
    if (plot->legend || plot->series_count > 1)
        fputs("set key outside bottom center horizontal Left reverse noenhanced samplen 2.5 "
              "spacing 1.2 width 1 height 0.7\n",
              file);
    else
        fputs("set key off\n", file);
}

void at_plot_script(FILE *file, const at_plot *plot, const char *name)
{
    char comment[1024];
    assert(at_plot_has_points(plot));
    snprintf(comment, sizeof comment, "gnuplot %s.gp  draws %s.png and %s.svg from %s.csv", name,
             name, name, name);
    write_begin(file, comment);
    write_layout(file, plot);
    write_frame(file, plot, plot->title);
    fprintf(file,
            "set terminal pngcairo size 900,560 font 'sans,12' background rgb 'white' noenhanced\n"
            "set output '%s.png'\n",
            name);
    write_plot(file, plot, name);
    fprintf(file,
            "set terminal svg size 900,560 font 'sans,15' background rgb 'white' noenhanced\n"
            "set output '%s.svg'\n"
            "replot\n"
            "set output\n",
            name);
}

/* ---- sheet: a grid of plots with a common legend below --------------------------------------- */

enum {
    FRAME_WIDTH = 500, /* pixels, including labels */
    FRAME_HEIGHT = 350,
    TITLE_HEIGHT = 44,
    LABEL_HEIGHT = 62, /* of the x axis */
    LEGEND_LINE_HEIGHT = 26,
    LEGEND_ENTRY_WIDTH = 300,
};

typedef struct layout {
    size_t rows, width, height; /* pixels */
    size_t legend_columns, legend_height;
} layout;

static layout arrange(const at_sheet *sheet)
{
    assert(sheet->columns >= 1);
    size_t names = sheet->plots[0].plot.series_count;
    layout l = {.rows = (sheet->count + sheet->columns - 1) / sheet->columns,
                .width = sheet->columns * FRAME_WIDTH};
    l.legend_columns = l.width / LEGEND_ENTRY_WIDTH;
    l.legend_height = LEGEND_LINE_HEIGHT * ((names + l.legend_columns - 1) / l.legend_columns + 1);
    l.height = TITLE_HEIGHT + l.rows * FRAME_HEIGHT + l.legend_height;
    return l;
}

/* Resets what the previous plot of the sheet has set. */
static const char RESET[] = "unset arrow\nunset label\nunset logscale\nunset xlabel\nunset ylabel\n"
                            "set border 3 linewidth 1.2 linecolor rgb '#666666'\n"
                            "set tics nomirror out scale 0.6 textcolor rgb '#333333'\n"
                            "set xtics autofreq nomirror\nset ytics autofreq nomirror\n"
                            "set grid linetype 1 linewidth 0.8 linecolor rgb '#dddddd'\n";

/* Sets the corners of a plot, as fractions of the page. */
static void write_margins(FILE *file, const at_sheet *sheet, const layout *l, size_t index)
{
    assert(index < sheet->count);
    size_t column = index % sheet->columns, row = index / sheet->columns;
    double width = (double)l->width, height = (double)l->height;
    double left = (double)(column * FRAME_WIDTH + 88), right = (double)((column + 1) * FRAME_WIDTH);
    double top = (double)(TITLE_HEIGHT + row * FRAME_HEIGHT + 44);
    double bottom = (double)(TITLE_HEIGHT + (row + 1) * FRAME_HEIGHT - LABEL_HEIGHT);
    fprintf(file,
            "set lmargin at screen %.4f\nset rmargin at screen %.4f\n"
            "set tmargin at screen %.4f\nset bmargin at screen %.4f\n",
            left / width, (right - 22) / width, 1 - top / height, 1 - bottom / height);
}

/* The legend is a plot without axes, over the whole width of the page. The title of the page is
 * written with it, because a label of any other plot would be reset by the next one. */
static void write_sheet_legend(FILE *file, const at_sheet *sheet, const layout *l)
{
    fprintf(file,
            "%sunset title\nunset border\nunset tics\nunset grid\n"
            "set lmargin at screen 0\nset rmargin at screen 1\n"
            "set bmargin at screen 0\nset tmargin at screen %.4f\n"
            "set xrange [0:1]\nset yrange [0:1]\n"
            "set key inside center center horizontal maxcols %zu Left reverse noenhanced "
            "samplen 2.5 spacing 1.2 width 1\n",
            RESET, (double)l->legend_height / (double)l->height, l->legend_columns);
    write_text(file, "label 1", sheet->title, "at screen 0.5, screen 0.978 center font ',17'");
    write_legend(file, &sheet->plots[0].plot);
}

static void write_page(FILE *file, const at_sheet *sheet, const layout *l, const char *terminal,
                       int font, const char *ending)
{
    assert(font > 0);
    fprintf(file,
            "set terminal %s size %zu,%zu font 'sans,%d' background rgb 'white' noenhanced\n"
            "set output '%s.%s'\n"
            "set multiplot\n"
            "set key off\n",
            terminal, l->width, l->height, font, sheet->name, ending);
    for (size_t i = 0; i < sheet->count; i++) {
        const at_named_plot *named = &sheet->plots[i];
        fprintf(file, "\n%s", RESET);
        write_margins(file, sheet, l, i);
        write_frame(file, &named->plot, named->heading);
        write_plot(file, &named->plot, named->name);
    }
    fputc('\n', file);
    write_sheet_legend(file, sheet, l);
    fputs("unset multiplot\nset output\n\n", file);
}

void at_sheet_script(FILE *file, const at_sheet *sheet)
{
    char comment[1024];
    assert(at_sheet_has_points(sheet));
    layout l = arrange(sheet);
    snprintf(comment, sizeof comment, "gnuplot %s.gp  draws %s.png and %s.svg from the .csv files",
             sheet->name, sheet->name, sheet->name);
    write_begin(file, comment);
    write_page(file, sheet, &l, "pngcairo", 11, "png");
    write_page(file, sheet, &l, "svg", 14, "svg");
}
