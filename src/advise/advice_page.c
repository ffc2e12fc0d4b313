/* The advice as a web page: one file, no scripts. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "advise/advice.h"
#include "base/file.h"
#include "base/text.h"

static const char style[] =
    ":root{color-scheme:light dark;--ink:#222;--ground:#fff;--line:#ddd;--bar:#2a78b5;--own:#777;"
    "--box:#f2f7fb}@media(prefers-color-scheme:dark){:root{--ink:#e6eaf0;--ground:#14181f;"
    "--line:#38414f;--bar:#5aa9f5;--own:#8b95a3;--box:#1d2530}}"
    "body{font:16px/1.5 system-ui,sans-serif;margin:0;color:var(--ink);background:var(--ground)}"
    "main{max-width:70em;margin:2em auto;padding:0 1em}h1{overflow-wrap:anywhere}"
    "table{border-collapse:collapse;margin:1em 0}"
    "td,th{padding:.3em .8em;text-align:right;border-bottom:1px solid var(--line);"
    "white-space:nowrap}td:first-child,th:first-child{text-align:left}"
    "tbody th{font-weight:normal}.best>*{font-weight:bold}"
    ".scroll{overflow-x:auto;background:linear-gradient(to right,var(--ground) 60%,transparent) "
    "left/2rem 100%,linear-gradient(to left,var(--ground) 60%,transparent) right/2rem 100%,"
    "radial-gradient(farthest-side at 100% 50%,var(--own),transparent) right/.7rem 100%;"
    "background-repeat:no-repeat;background-attachment:local,local,scroll}"
    ":focus-visible{outline:2px solid var(--bar);outline-offset:2px}"
    ".advice{font-size:1.15em;border-left:4px solid var(--bar);padding:.4em 1em}"
    ".advice,pre{background:var(--box)}pre{padding:.6em 1em;white-space:pre-wrap;"
    "overflow-wrap:anywhere}"
    "svg{max-width:100%;height:auto}rect.bar{fill:var(--bar)}rect.own{fill:var(--own)}"
    "line{stroke:var(--ink)}text{font:13px "
    "system-ui,sans-serif;fill:var(--ink);paint-order:stroke;stroke:var(--ground);stroke-width:4px}"
    "li{margin:.2em 0}";

/* As text of an element. */
static void put_text(FILE *file, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '<')
            fputs("&lt;", file);
        else if (c == '&')
            fputs("&amp;", file);
        else
            fputc(c < ' ' || c == 127 ? '?' : c, file);
    }
}

static void put_row(FILE *file, const at_advice *a, uint32_t i)
{
    const at_prediction *p = &a->predictions.row[i];
    char                 rate[40];
    fprintf(file, "<tr%s><th scope=row>", i == a->best ? " class=best" : "");
    put_text(file, p->strategy);
    fprintf(file, "<td>%.4g<td>%s<td>%.0f %%<td>%.2g<td>%.3f", p->step_s,
            at_text_show_number(rate, sizeof rate, p->rate), 100 * p->useful, p->staleness,
            p->gain);
    fprintf(file, "<td>%.3f to %.3f<td>%.3f<td>", p->low, p->high, p->fitted_gain);
    put_text(file, p->settings);
    if (a->options.cost > 0) fprintf(file, "<td>%.4g", at_advice_cost(a, p));
    fputs("\n", file);
}

static void put_table(FILE *file, const at_advice *a)
{
    fprintf(file,
            "<div class=scroll tabindex=0 role=region aria-label=Strategies>\n<table><thead><tr>"
            "<th scope=col>strategy<th scope=col>step, s<th scope=col>samples/s<th scope=col>useful"
            "<th scope=col>staleness<th scope=col>gain<th scope=col>95 %% interval"
            "<th scope=col>gain, fitted<th scope=col>set%s<tbody>\n",
            a->options.cost > 0 ? "<th scope=col>cost per million" : "");
    for (uint32_t i = 0; i < a->predictions.count; i++) put_row(file, a, i);
    fputs("</table></div>\n<p>Gain: samples per second relative to that of the log, from replaying "
          "the log. Fitted: the same with speeds and pauses drawn from a model of the log.</p>\n",
          file);
}

/* Gains as bars with their intervals. */
static void put_chart(FILE *file, const at_advice *a)
{
    enum { ROW = 24, LEFT = 110, WIDTH = 560 };
    double most = a->room;
    for (uint32_t i = 0; i < a->predictions.count; i++)
        most = fmax(most, a->predictions.row[i].high);
    double scale = WIDTH / most;
    fprintf(file,
            "<svg width=\"%d\" viewBox=\"0 0 %d %u\" role=\"img\" "
            "aria-label=\"Gain per strategy; the table below has the numbers\">",
            LEFT + WIDTH + 90, LEFT + WIDTH + 90, (a->predictions.count + 1) * ROW);
    for (uint32_t i = 0; i < a->predictions.count; i++) {
        const at_prediction *p = &a->predictions.row[i];
        double               y = i * ROW;
        fprintf(file, "<text x=\"0\" y=\"%.0f\">%s</text>", y + 16, p->strategy);
        fprintf(file, "<rect class=\"%s\" x=\"%d\" y=\"%.0f\" width=\"%.1f\" height=\"16\"/>",
                i == a->predictions.own ? "own" : "bar", LEFT, y + 3, p->gain * scale);
        fprintf(file, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.0f\" y2=\"%.0f\"/>",
                LEFT + p->low * scale, LEFT + p->high * scale, y + 11, y + 11);
        fprintf(file, "<text x=\"%.1f\" y=\"%.0f\">%.2fx</text>\n", LEFT + p->high * scale + 6,
                y + 16, p->gain);
    }
    fprintf(file, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"0\" y2=\"%u\" stroke-dasharray=\"4\"/>",
            LEFT + a->room * scale, LEFT + a->room * scale, a->predictions.count * ROW);
    fprintf(file, "<text x=\"%.1f\" y=\"%u\">ceiling %.2fx</text></svg>\n",
            LEFT + a->room * scale - 60, a->predictions.count * ROW + 16, a->room);
}

static void put_slow(FILE *file, const at_advice *a)
{
    char period[120];
    if (a->slow.count == 0) return;
    fputs(
        "<h2>Slow workers</h2>\n"
        "<div class=scroll tabindex=0 role=region aria-label=\"Slow workers\">\n<table><thead><tr>"
        "<th scope=col>worker<th scope=col>when<th scope=col>gain if replaced<tbody>\n",
        file);
    for (uint32_t i = 0; i < a->slow.count; i++) {
        const at_slow_worker *slow = &a->slow.worker[i];
        at_advice_period(a, slow, period, sizeof period);
        fputs("<tr><th scope=row>", file);
        put_text(file, a->measured.log.names[slow->worker]);
        fprintf(file, "<td>%s<td>%.3f\n", period, slow->gain);
    }
    fputs("</table></div>\n", file);
}

static void put_page(FILE *file, const at_advice *a)
{
    char        buffer[AT_STEP_LOG_NOTES_SIZE + 100], rate[40];
    const char *note;
    fprintf(file,
            "<!doctype html>\n<html lang=en><meta charset=utf-8>\n"
            "<meta name=viewport content=\"width=device-width, initial-scale=1\">\n"
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
            "style-src 'unsafe-inline'\">\n<title>Advice</title><style>%s</style>\n<main>\n",
            style);
    fputs("<h1>Advice for ", file);
    put_text(file, a->path);
    fputs("</h1>\n<p class=advice>", file);
    put_text(file, a->sentence);
    fputs(".</p>\n", file);
    if (*a->command) {
        fputs("<pre>", file);
        put_text(file, a->command);
        fputs("</pre>\n", file);
    }
    fprintf(file,
            "<h2>Strategies</h2>\n<p>%u workers, %u steps, %u samples per round; the log: "
            "%.4g s per step, %s samples/s.</p>\n",
            a->measured.log.workers, a->measured.log.steps, a->measured.batch, a->measured.step_s,
            at_text_show_number(rate, sizeof rate, a->measured.rate));
    put_chart(file, a);
    put_table(file, a);
    put_slow(file, a);
    fputs("<h2>Assumptions</h2>\n<ul>\n", file);
    for (uint32_t i = 0; (note = at_advice_note(a, i, buffer, sizeof buffer)); i++) {
        fputs("<li>", file);
        put_text(file, note);
        fputs("\n", file);
    }
    fputs("</ul>\n</main>\n", file);
}

at_err at_advice_page(const at_advice *advice, const char *path, at_fail *fail)
{
    char  *text = NULL;
    size_t size = 0;
    FILE  *file = open_memstream(&text, &size);
    if (!file) return at_fail_memory_for(fail, "for %s", path);
    put_page(file, advice);
    at_err err = fclose(file) ? at_fail_memory_for(fail, "for %s", path)
                              : at_file_write(path, text, size, fail);
    free(text);
    return err;
}
