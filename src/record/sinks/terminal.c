#include "record/sinks/terminal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

enum { WIDTH_UNKNOWN = 80, SIZE_LIMIT = 10000 };

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

/* A size from the environment; 0 when it is not set or invalid. */
static int size_from_env(const char *name)
{
    const char *text = getenv(name);
    int64_t     value;
    bool        is_size = text && at_text_whole(text, &value) && value > 0 && value <= SIZE_LIMIT;
    return is_size ? (int)value : 0;
}

at_terminal_size at_terminal_window(FILE *file)
{
    assert(file);
    struct winsize   size = {0};
    at_terminal_size window = {.columns = size_from_env("COLUMNS"), .rows = size_from_env("LINES")};
    int              fd = fileno(file);
    if (fd < 0 || ioctl(fd, TIOCGWINSZ, &size)) return window;
    if (window.columns == 0) window.columns = size.ws_col;
    if (window.rows == 0) window.rows = size.ws_row;
    return window;
}

int at_terminal_rows(const int *width, int lines, int columns)
{
    assert(columns >= 1);
    int rows = 0;
    for (int i = 0; i < lines; i++) rows += width[i] > columns ? (width[i] - 1) / columns + 1 : 1;
    return rows;
}

/* The first of these variables that is set decides: "en_GB.UTF-8", "C.utf8". */
bool at_console_is_ascii(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!is_set(names[i])) continue;
        const char *charset = strchr(getenv(names[i]), '.');
        return !charset ||
               (strncasecmp(charset, ".utf-8", 6) != 0 && strncasecmp(charset, ".utf8", 5) != 0);
    }
    return true;
}

at_console_options at_console_detect(FILE *file, bool quiet)
{
    assert(file);
    const char        *term = getenv("TERM");
    bool               can_redraw = term && *term && strcmp(term, "dumb") != 0;
    int                width = at_terminal_window(file).columns;
    at_console_options options = {
        .file = file,
        .terminal = can_redraw && isatty(fileno(file)),
        .quiet = quiet,
        .width = width > 0 ? width : WIDTH_UNKNOWN,
        .ascii = at_console_is_ascii(),
        .clock = at_clock_now,
    };
    options.color = options.terminal && !is_set("NO_COLOR");
    return options;
}
