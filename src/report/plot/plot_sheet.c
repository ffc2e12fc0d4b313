/* The script of a sheet: a grid of frames, and below it one legend for all of them. */
#include <assert.h>

#include "report/plot/plot_script.h"

enum {
    FRAME_WIDTH = 500, /* pixels, with its labels */
    FRAME_HEIGHT = 350,
    TITLE_HEIGHT = 44,
    LABEL_HEIGHT = 62,        /* of the lowest frames' x axis */
    LEGEND_LINE = 26,         /* pixels */
    LEGEND_PLACE_WIDTH = 300, /* of one name in it */
};

bool at_sheet_has_points(const at_sheet *sheet)
{
    assert(sheet->pictures || sheet->count == 0);
    for (size_t i = 0; i < sheet->count; i++)
        if (at_plot_has_points(&sheet->pictures[i].plot)) return true;
    return false;
}

typedef struct layout {
    size_t rows, width, height; /* pixels */
    size_t legend_columns, legend_height;
} layout;

static layout arrange(const at_sheet *sheet)
{
    assert(sheet->columns >= 1);
    size_t names = sheet->pictures[0].plot.series_count;
    layout l = {.rows = (sheet->count + sheet->columns - 1) / sheet->columns,
                .width = sheet->columns * FRAME_WIDTH};
    l.legend_columns = l.width / LEGEND_PLACE_WIDTH;
    l.legend_height = LEGEND_LINE * ((names + l.legend_columns - 1) / l.legend_columns + 1);
    l.height = TITLE_HEIGHT + l.rows * FRAME_HEIGHT + l.legend_height;
    return l;
}

/* Settings that every frame begins with; what the frame before it had set is gone. */
static const char FRESH[] = "unset arrow\nunset label\nunset logscale\nunset xlabel\nunset ylabel\n"
                            "set border 3 linewidth 1.2 linecolor rgb '#666666'\n"
                            "set tics nomirror out scale 0.6 textcolor rgb '#333333'\n"
                            "set xtics autofreq nomirror\nset ytics autofreq nomirror\n"
                            "set grid linetype 1 linewidth 0.8 linecolor rgb '#dddddd'\n";

/* Places a frame by its corners, as parts of the page. */
static void place(FILE *file, const at_sheet *sheet, const layout *l, size_t index)
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

/* The legend is a plot of its own without a frame, over the whole width of the page. The page's
 * title comes with it: a label that any frame had would be gone with the next one. */
static void write_legend(FILE *file, const at_sheet *sheet, const layout *l)
{
    fprintf(file,
            "%sunset title\nunset border\nunset tics\nunset grid\n"
            "set lmargin at screen 0\nset rmargin at screen 1\n"
            "set bmargin at screen 0\nset tmargin at screen %.4f\n"
            "set xrange [0:1]\nset yrange [0:1]\n"
            "set key inside center center horizontal maxcols %zu Left reverse noenhanced "
            "samplen 2.5 spacing 1.2 width 1\n",
            FRESH, (double)l->legend_height / (double)l->height, l->legend_columns);
    at_script_text(file, "label 1", sheet->title, "at screen 0.5, screen 0.978 center font ',17'");
    at_script_legend(file, &sheet->pictures[0].plot);
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
        const at_named_plot *picture = &sheet->pictures[i];
        fprintf(file, "\n%s", FRESH);
        place(file, sheet, l, i);
        at_script_frame(file, &picture->plot, picture->heading);
        at_script_plot(file, &picture->plot, picture->name);
    }
    fputc('\n', file);
    write_legend(file, sheet, l);
    fputs("unset multiplot\nset output\n\n", file);
}

void at_sheet_script(FILE *file, const at_sheet *sheet)
{
    char comment[1024];
    assert(at_sheet_has_points(sheet));
    layout l = arrange(sheet);
    snprintf(comment, sizeof comment, "gnuplot %s.gp  draws %s.png and %s.svg from the .csv files",
             sheet->name, sheet->name, sheet->name);
    at_script_begin(file, comment);
    write_page(file, sheet, &l, "pngcairo", 11, "png");
    write_page(file, sheet, &l, "svg", 14, "svg");
}
