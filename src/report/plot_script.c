/* Nothing that comes from outside is ever a command: titles and names enter the script as
 * single-quoted text, where gnuplot expands nothing; data stay in a file of numbers; file names are
 * our own; and gnuplot is started without a shell. */
#include "report/plot_script.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>

#include "report/utf8.h"

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
    if (width <= 1e-9 * fabs(data.high)) width = data.high != 0 ? fabs(data.high) / 2 : 1;
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

static void write_axis(FILE *file, char axis, span data, bool log_axis, double margin)
{
    if (log_axis && data.high / data.low < LOG_RATIO_MIN) log_axis = false; /* nobody can tell */
    span range = log_axis ? range_log(data, margin) : range_linear(data, margin);
    assert(range.low < range.high);
    fprintf(file, "set %crange [%.10g:%.10g]\n", axis, range.low, range.high);
    if (!log_axis) return;
    fprintf(file, "set logscale %c\n", axis);
    if (log10(range.high / range.low) <= DECADES_FINE_MAX) write_fine_marks(file, axis, range);
}

static void write_axes(FILE *file, const at_plot *plot)
{
    span x, y;
    measure(plot, &x, &y);
    write_axis(file, 'x', x, plot->x_log, 0.01);
    write_axis(file, 'y', y, plot->y_log, 0.04);
}

static void write_text_setting(FILE *file, const char *setting, const char *text, const char *font)
{
    assert(setting && font);
    if (!text) return;
    fprintf(file, "set %s ", setting);
    write_quoted(file, text);
    fprintf(file, " noenhanced %s\n", font);
}

static void write_style(FILE *file, const at_plot *plot)
{
    fputs("set encoding utf8\n"
          "set datafile separator ','\n"
          "set datafile missing NaN\n"
          "set border 3 linewidth 1.2 linecolor rgb '#666666'\n"
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
    write_text_setting(file, "title", plot->title, "font ',15'");
    write_text_setting(file, "xlabel", plot->x_label, "");
    write_text_setting(file, "ylabel", plot->y_label, "");
}

/* The series of a file that holds them all; other rows are no points to this line. */
static void write_series(FILE *file, const at_plot *plot, const char *name, size_t index)
{
    assert(index < plot->series_count);
    const at_series *series = &plot->series[index];
    size_t           stride = series->count / POINTS_DRAWN_MAX + 1;
    bool             marked = series->count <= POINTS_MARKED_MAX;
    fprintf(file, "  '%s.csv' skip 1 every %zu using ($1 == %zu%s%s ? $2 : NaN):3 title ", name,
            stride, index + 1, plot->x_log ? " && $2 > 0" : "", plot->y_log ? " && $3 > 0" : "");
    write_quoted(file, series->name);
    fprintf(file, " with %s linewidth 2.6 dashtype %zu linecolor rgb '%s'",
            marked ? "linespoints" : "lines", index / COLOUR_COUNT + 1,
            COLOURS[index % COLOUR_COUNT]);
    if (marked) fprintf(file, " pointtype %zu pointsize 0.9", 5 + 2 * (index % 5));
}

void at_plot_script(FILE *file, const at_plot *plot, const char *name)
{
    assert(plot->series_count > 0);
    fprintf(file, "# gnuplot %s.gp  draws %s.png and %s.svg from %s.csv\n", name, name, name, name);
    write_style(file, plot);
    write_axes(file, plot);
    fprintf(file,
            "set terminal pngcairo size 900,560 font 'sans,12' background rgb 'white' noenhanced\n"
            "set output '%s.png'\n"
            "plot \\\n",
            name);
    for (size_t s = 0; s < plot->series_count; s++) {
        write_series(file, plot, name, s);
        fputs(s + 1 < plot->series_count ? ", \\\n" : "\n", file);
    }
    fprintf(file,
            "set terminal svg size 900,560 font 'sans,15' background rgb 'white' noenhanced\n"
            "set output '%s.svg'\n"
            "replot\n"
            "set output\n",
            name);
}
