#include "report/page/html.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic_file.h"
#include "report/page/page.h"
#include "report/summary/run_summary.h"
#include "report/summary/utf8.h"

static const char *const styles[] = {"dygraph.min.css", "page.css"};
static const char *const scripts[] = {
    "dygraph.min.js",    "dom.js",           "run_data.js", "legend.js",  "charts.js",
    "timeline.js",       "summary_table.js", "workers.js",  "network.js", "sections.js",
    "resource_table.js", "panels.js",        "page.js",     "report.js"};

typedef struct page {
    at_atomic_file draft;
    const char    *title;
    const json_t  *data;
    bool           dumped; /* the data could be serialized */
} page;

static const at_page_file *find_file(const char *name)
{
    for (size_t i = 0; i < at_page_files_count; i++)
        if (strcmp(at_page_files[i].name, name) == 0) return &at_page_files[i];
    assert(!"a file of the page is missing");
    return NULL;
}

static void put_text(page *p, const char *text)
{
    at_atomic_file_put(&p->draft, text, strlen(text));
}

/* ---- replacements of the marks ------------------------------------------------------------- */

/* As text of an element: characters that are special in HTML are escaped. */
static void put_title(page *p)
{
    for (const char *c = p->title; *c;) {
        uint32_t code;
        size_t   size = at_utf8_next(c, &code);
        if (code == '<')
            put_text(p, "&lt;");
        else if (code == '&')
            put_text(p, "&amp;");
        else if (code == '?')
            put_text(p, "?");
        else
            at_atomic_file_put(&p->draft, c, size);
        c += size;
    }
}

/* Embedded files, each in its own element. None may contain the end of that element. */
static void put_files(page *p, const char *element, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const at_page_file *file = find_file(names[i]);
        assert(!strstr(file->bytes, "</script"));
        assert(!strstr(file->bytes, "</style"));
        assert(!strstr(file->bytes, "<!--"));
        put_text(p, "<");
        put_text(p, element);
        put_text(p, ">\n");
        at_atomic_file_put(&p->draft, file->bytes, file->size);
        put_text(p, "</");
        put_text(p, element);
        put_text(p, ">\n");
    }
}

static void put_styles(page *p)
{
    put_files(p, "style", styles, sizeof styles / sizeof *styles);
}

static void put_scripts(page *p)
{
    put_files(p, "script", scripts, sizeof scripts / sizeof *scripts);
}

/* In JSON a '<' can only be part of a string, where it can be escaped. */
static void put_json(page *p, const char *text)
{
    for (const char *found; (found = strchr(text, '<')); text = found + 1) {
        at_atomic_file_put(&p->draft, text, (size_t)(found - text));
        put_text(p, "\\u003c");
    }
    put_text(p, text);
}

static void put_data(page *p)
{
    char *text = json_dumps(p->data, AT_RUN_SUMMARY_JSON_FLAGS);
    p->dumped = text != NULL;
    put_text(p, "<script type=\"application/json\" id=\"data\">");
    if (text) put_json(p, text);
    put_text(p, "</script>\n");
    free(text);
}

static const struct {
    const char *mark;
    void (*put)(page *p);
} marks[] = {{"{{title}}", put_title},
             {"{{styles}}", put_styles},
             {"{{data}}", put_data},
             {"{{scripts}}", put_scripts}};

/* ---- the page ------------------------------------------------------------------------------ */

/* Writes the replacement of a mark; returns the size of the mark. */
static size_t put_mark(page *p, const char *at)
{
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        size_t size = strlen(marks[i].mark);
        if (strncmp(at, marks[i].mark, size) != 0) continue;
        marks[i].put(p);
        return size;
    }
    assert(!"an unknown mark");
    return 1;
}

static void put_page(page *p)
{
    const char *at = find_file("page.html")->bytes;
    for (const char *mark; (mark = strstr(at, "{{"));) {
        at_atomic_file_put(&p->draft, at, (size_t)(mark - at));
        at = mark + put_mark(p, mark);
    }
    put_text(p, at);
}

at_err at_html_write(const char *path, const char *title, const json_t *data, at_fail *fail)
{
    page p = {.title = title, .data = data};
    AT_TRY(at_atomic_file_begin(&p.draft, path, false, fail));
    put_page(&p);
    AT_TRY(at_atomic_file_commit(&p.draft, fail));
    if (p.dumped) return AT_OK;
    return at_fail_memory_for(fail, "for the data of %s", path);
}
