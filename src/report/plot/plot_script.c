/* Nothing that comes from outside is ever a command: titles and names enter the script as
 * single-quoted text, where gnuplot expands nothing; data stay in a file of numbers; file names are
 * our own; and gnuplot is started without a shell. */
#include "report/plot/plot_script.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>

#include "report/summary/utf8.h"

enum {
    POINTS_DRAWN_MAX = 4000, /* a series: more than this only makes the picture larger */
    POINTS_MARKED_MAX = 40,  /* a series with fewer points shows where they are */
    DECADES_FINE_MAX = 3     /* up to here a logarithmic axis has marks at 1, 2, 5 */
};

/* Okabe and Ito's colours, which colour-blind people can tell apart, the pale ones last. */
static const char *const COLOURS[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                      "#E69F00", "#56B4E9", "#000000"};
enum { COLOUR_COUNT = sizeof COLOURS / sizeof *COLOURS };

static const double VALUE_MAX = 1e100; /* so that ranges and margins stay finite */
static const double WHOLE_WIDTH_MIN = 6;
static const double LOG_RATIO_MIN = 5; /* below this a logarithmic axis would have no marks */

static bool can_draw(double value, bool log_axis)
{
    if (log_axis && value < 1 / VALUE_MAX) return false;
    return fabs(value) <= VALUE_MAX; /* false for NAN, too */
}

bool at_plot_is_point(const at_plot *plot, const at_series *series, size_t i)
{
    assert(i < series->count);
    return can_draw(series->x[i], plot->x_log) && can_draw(series->y[i], plot->y_log);
}

/* Copies a text. What is not UTF-8 must not pass (gnuplot draws it as anything), nor the end of a
 * line, nor a quote. gnuplot reads a doubled quote wrongly at the very beginning, so a quote is
 * set as the typographic one instead: then nothing can end the text. */
static void write_quoted(FILE *file, const char *text)
{
    assert(text);
    fputc('\'', file);
    while (*text) {
        uint32_t letter;
        size_t   size = at_utf8_next(text, &letter);
        if (*text == '\n' || *text == '\t')
            fputc(' ', file);
        else if (letter == '\'')
            fputs("\u2019", file);
        else if (letter == '?')
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
            if (!at_plot_is_point(plot, &plot->series[s], i)) continue;
            widen_to(x, plot->series[s].x[i]);
            widen_to(y, plot->series[s].y[i]);
        }
    assert(x->low <= x->high);
    assert(y->low <= y->high);
}

/* Some air around the data; an axis that nearly reaches 0 goes all the way. */
static span range_linear(span data, double margin)
{
    assert(margin > 0);
    double width = data.high - data.low;
    if (data.high == 0 && width == 0) return (span){-margin, 1};
    if (width <= 1e-9 * fabs(data.high)) /* one value: seen from 0, it is not noise */
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

/* Marks at 1, 2 and 5 times the powers of ten. */
static void write_fine_marks(FILE *file, char axis, span range)
{
    const char *comma = "";
    fprintf(file, "set %ctics (", axis);
    assert(range.low > 0);
    int first = (int)floor(log10(range.low)), last = (int)floor(log10(range.high));
    for (int power = first; power <= last; power++)
        for (int digit = 1; digit <= 5; digit += digit == 1 ? 1 : 3) {
            double mark = digit * pow(10, power);
            if (mark < range.low || mark > range.high) continue;
            fprintf(file, "%s'%g' %.10g", comma, mark, mark);
            comma = ", ";
        }
    fputs(")\n", file);
}

/* ---- units of time ------------------------------------------------------------------------- */

typedef struct unit {
    const char *name;
    double      each;   /* of them in a second */
    const char *factor; /* the same, for the script */
} unit;

static unit unit_for(double seconds)
{
    if (seconds >= 1 || seconds <= 0) return (unit){"s", 1, "1"};
    return seconds >= 1e-3 ? (unit){"ms", 1e3, "1e3"} : (unit){"\u00b5s", 1e6, "1e6"};
}

static unit rate_of(unit time)
{
    if (time.each == 1) return (unit){"1/s", 1, "1"};
    return time.each == 1e3 ? (unit){"1/ms", 1e-3, "1e-3"} : (unit){"1/\u00b5s", 1e-6, "1e-6"};
}

/* The units of both axes; 1 for an axis that is not time. */
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

/* A few whole numbers at least, so that a single one does not fill the axis. */
static span write_whole_marks(FILE *file, span data)
{
    double missing = WHOLE_WIDTH_MIN - (data.high - data.low);
    if (missing < 0) return data;
    fputs("set xtics 1\n", file);
    double below = data.low >= -0.5 ? fmin(missing / 2, data.low + 0.5) : missing / 2;
    return (span){data.low - below, data.high + missing - below};
}

static span write_axis(FILE *file, char axis, span data, bool log_axis, double margin)
{
    if (log_axis && data.high / data.low < LOG_RATIO_MIN) log_axis = false; /* nobody can tell */
    span range = log_axis ? range_log(data, margin) : range_linear(data, margin);
    assert(range.low < range.high);
    fprintf(file, "set %crange [%.10g:%.10g]\n", axis, range.low, range.high);
    if (!log_axis) return range;
    fprintf(file, "set logscale %c\n", axis);
    if (log10(range.high / range.low) <= DECADES_FINE_MAX) write_fine_marks(file, axis, range);
    return range;
}

/* An upright at the mean, say; outside the axes it would be drawn across other things. */
static void write_uprights(FILE *file, const at_plot *plot, span x, double each)
{
    for (size_t s = 0; plot->mean && s < plot->series_count; s++) {
        double at = plot->mean[s] * each;
        if (!(at >= x.low && at <= x.high)) continue; /* NAN, too */
        fprintf(file,
                "set arrow from first %.10g, graph 0 to first %.10g, graph 1 nohead front "
                "linewidth 1.6 dashtype 2 linecolor rgb '%s'\n",
                at, at, COLOURS[s % COLOUR_COUNT]);
    }
}

static void write_axes(FILE *file, const at_plot *plot, unit x_unit, unit y_unit)
{
    span x, y;
    measure(plot, &x, &y);
    x = (span){x.low * x_unit.each, x.high * x_unit.each};
    y = (span){y.low * y_unit.each, y.high * y_unit.each};
    if (plot->x_whole) x = write_whole_marks(file, x);
    x = write_axis(file, 'x', x, plot->x_log, plot->kind == AT_PLOT_STEPS ? 0.03 : 0.01);
    write_axis(file, 'y', y, plot->y_log, 0.04);
    write_uprights(file, plot, x, x_unit.each);
}

void at_script_text(FILE *file, const char *setting, const char *text, const char *font)
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
    at_script_text(file, setting, label, "");
}

/* A frame without points has no numbers at its axes, only a few words. */
static void write_note(FILE *file, const char *note)
{
    fputs("set xrange [0:1]\nset yrange [0:1]\nunset tics\n", file);
    at_script_text(file, "label 1", note, "at graph 0.5, graph 0.5 center textcolor rgb '#777777'");
}

void at_script_frame(FILE *file, const at_plot *plot, const char *title)
{
    unit x, y;
    choose_units(plot, &x, &y);
    at_script_text(file, "title", title, "font ',15' offset 0,-0.4");
    write_label(file, "xlabel", plot->x_label, x);
    write_label(file, "ylabel", plot->y_label, y);
    if (at_plot_has_points(plot))
        write_axes(file, plot, x, y);
    else
        write_note(file, plot->note);
}

void at_script_begin(FILE *file, const char *comment)
{
    fprintf(file, "# %s\n", comment);
    fputs("reset\n"
          "set encoding utf8\n"
          "set datafile separator ','\n"
          "set datafile missing NaN\n",
          file);
}

/* ---- data ---------------------------------------------------------------------------------- */

/* Colour and dashes: other series of the same colour differ in their dashes. */
static void write_look(FILE *file, size_t index)
{
    fprintf(file, " linewidth 2.6 dashtype %zu linecolor rgb '%s'", index / COLOUR_COUNT + 1,
            COLOURS[index % COLOUR_COUNT]);
}

/* The rows of one series in a file that holds them all; other rows are no points to this line. */
static void write_rows_of(FILE *file, const at_plot *plot, const char *name, size_t index)
{
    assert(index < plot->series_count);
    unit x, y;
    choose_units(plot, &x, &y);
    fprintf(file, "  '%s.csv' skip 1 every %zu using ($1 == %zu%s%s ? $2 * %s : NaN):", name,
            plot->series[index].count / POINTS_DRAWN_MAX + 1, index + 1,
            plot->x_log ? " && $2 > 0" : "", plot->y_log ? " && $3 > 0" : "", x.factor);
    if (y.each == 1)
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
    write_look(file, index);
    if (marked) fprintf(file, " pointtype %zu pointsize 0.9", 5 + 2 * (index % 5));
}

/* The area shines through, so that what lies behind it is seen, and its outline is drawn over. */
static void write_steps(FILE *file, const at_plot *plot, const char *name, size_t index)
{
    write_rows_of(file, plot, name, index);
    fprintf(file,
            " notitle with fillsteps fillstyle transparent solid %.2f noborder "
            "linecolor rgb '%s', \\\n",
            fmax(0.05, 0.5 / (double)(plot->series_count + 1)), COLOURS[index % COLOUR_COUNT]);
    write_rows_of(file, plot, name, index);
    fputs(" title ", file);
    write_quoted(file, plot->series[index].name);
    fputs(" with steps", file);
    write_look(file, index);
}

static void write_mean_look(FILE *file)
{
    fputs(", \\\n  NaN title 'mean' with lines linewidth 1.6 dashtype 2 linecolor rgb '#666666'",
          file);
}

/* gnuplot refuses a range without a single point in the file, so a series without is left out. */
static bool has_points(const at_plot *plot, size_t index)
{
    for (size_t i = 0; i < plot->series[index].count; i++)
        if (at_plot_is_point(plot, &plot->series[index], i)) return true;
    return false;
}

void at_script_plot(FILE *file, const at_plot *plot, const char *name)
{
    const char *comma = "";
    fputs("plot \\\n", file);
    for (size_t s = 0; s < plot->series_count; s++) {
        if (!has_points(plot, s)) continue;
        fputs(comma, file);
        if (plot->kind == AT_PLOT_STEPS)
            write_steps(file, plot, name, s);
        else
            write_line(file, plot, name, s);
        comma = ", \\\n";
    }
    if (*comma && plot->mean) write_mean_look(file);
    fputs(*comma ? "\n" : "  NaN notitle\n", file);
}

void at_script_legend(FILE *file, const at_plot *plot)
{
    assert(plot->series_count > 0);
    fputs("plot \\\n", file);
    for (size_t s = 0; s < plot->series_count; s++) {
        fputs("  NaN title ", file);
        write_quoted(file, plot->series[s].name);
        fputs(" with lines", file);
        write_look(file, s);
        if (s + 1 < plot->series_count) fputs(", \\\n", file);
    }
    if (plot->mean) write_mean_look(file);
    fputc('\n', file);
}

/* ---- a picture of its own ------------------------------------------------------------------ */

static void write_style(FILE *file, const at_plot *plot)
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
    at_script_begin(file, comment);
    write_style(file, plot);
    at_script_frame(file, plot, plot->title);
    fprintf(file,
            "set terminal pngcairo size 900,560 font 'sans,12' background rgb 'white' noenhanced\n"
            "set output '%s.png'\n",
            name);
    at_script_plot(file, plot, name);
    fprintf(file,
            "set terminal svg size 900,560 font 'sans,15' background rgb 'white' noenhanced\n"
            "set output '%s.svg'\n"
            "replot\n"
            "set output\n",
            name);
}
