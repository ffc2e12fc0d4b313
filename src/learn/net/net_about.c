/* What the text of a net says about itself: for whom it was made, and what it is. */
#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "learn/net/net_words.h"

/* `input 3x32x32` or `input 100`; the latter is 100 channels of one place. */
at_err at_net_input_read(const at_net_line *line, at_net_about *about, at_fail *fail)
{
    uint32_t size[3] = {0, 1, 1};
    bool     good = line->words == 2 && !line->options &&
                (at_net_sizes(line->word[1], size, 1) || at_net_sizes(line->word[1], size, 3));
    if (!good || (uint64_t)size[0] * size[1] > AT_NET_WIDTH_MAX ||
        (uint64_t)size[0] * size[1] * size[2] > AT_NET_WIDTH_MAX)
        return at_net_line_fail(line, fail, "input 3x32x32 (channels, height, width), or input 100",
                                "it does not say what the net reads");
    about->channels = size[0];
    about->height = size[1];
    about->width = size[2];
    return AT_OK;
}

at_err at_net_classes_read(const at_net_line *line, at_net_about *about, at_fail *fail)
{
    if (line->words != 2 || line->options ||
        !at_net_whole(line->word[1], 2, AT_NET_WIDTH_MAX, &about->classes))
        return at_net_line_fail(line, fail, "classes 1000", "it does not say how many classes");
    return AT_OK;
}

/* The text behind the first #, as far as it is printable and fits. */
static void read_summary(const char *text, at_net_about *about)
{
    size_t      used = 0;
    const char *c = strchr(text, '#');
    if (!c) return;
    for (c += strspn(c, "# \t"); *c && *c != '\n' && used + 1 < sizeof about->summary; c++)
        if (!iscntrl((unsigned char)*c)) about->summary[used++] = *c;
    /* Of a letter of several bytes that does not fit, nothing stays. */
    if (((unsigned char)*c & 0xC0) == 0x80) {
        while (used && ((unsigned char)about->summary[used - 1] & 0xC0) == 0x80) used--;
        if (used) used--;
    }
    about->summary[used] = '\0';
}

at_err at_net_text_fail(const char *name, at_fail *fail)
{
    if (!fail || strncmp(fail->text, "line ", 5)) return at_fail_wrap(fail, "%s", name);
    at_fail below = *fail;
    return at_fail_set(fail, below.err, below.hint, "%s %s", name, below.text);
}

static at_err read_about(const at_net_line *lines, size_t count, at_net_about *about, at_fail *fail)
{
    for (size_t i = 0; i < count; i++) {
        if (!strcmp(lines[i].word[0], "input")) AT_TRY(at_net_input_read(&lines[i], about, fail));
        if (!strcmp(lines[i].word[0], "classes"))
            AT_TRY(at_net_classes_read(&lines[i], about, fail));
    }
    return AT_OK;
}

at_err at_net_about_text(const char *name, const char *text, at_net_about *about, at_fail *fail)
{
    at_net_line *lines = NULL;
    size_t       count = 0;
    at_fail      own = {0};
    char        *copy = strdup(text);
    *about = (at_net_about){0};
    if (!copy) return at_fail_set(fail, AT_ERR_FAILED, NULL, "no memory for the text of a net");
    read_summary(text, about);
    at_err err = at_net_lines(copy, &lines, &count, &own);
    if (!err) err = read_about(lines, count, about, &own);
    free(lines);
    free(copy);
    if (err && fail) {
        *fail = own;
        at_net_text_fail(name, fail);
    }
    return err;
}

static const char *builtin_text(const char *name)
{
    for (size_t i = 0; i < at_net_builtins_count; i++)
        if (!strcmp(at_net_builtins[i].name, name)) return at_net_builtins[i].text;
    return NULL;
}

at_err at_net_about_find(const char *name, at_net_about *about, at_fail *fail)
{
    const char    *text = builtin_text(name), *end = strrchr(name, '.');
    unsigned char *bytes = NULL;
    size_t         size;
    *about = (at_net_about){0};
    if (text) return at_net_about_text(name, text, about, fail);
    if (!end || strcmp(end, ".net") != 0) return AT_OK;
    AT_TRY(at_file_read(name, AT_NET_TEXT_MAX, &bytes, &size, fail));
    at_err err = at_net_about_text(name, (const char *)bytes, about, fail);
    free(bytes);
    return err;
}
