#include "learn/net/net_line.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

at_err at_net_line_fail(const at_net_line *line, at_fail *fail, const char *hint,
                        const char *format, ...)
{
    char    sentence[400];
    va_list args;
    assert(line->number > 0);
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    return at_fail_set(fail, AT_ERR_USAGE, hint, "line %u: %s", line->number, sentence);
}

/* What may stand between words; \r so that texts of other systems can be read. */
static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static at_err check_bytes(const at_net_line *line, const char *text, at_fail *fail)
{
    size_t size = strlen(text);
    if (size > AT_NET_LINE_MAX)
        return at_net_line_fail(line, fail, NULL, "%zu characters, and a line has at most %d", size,
                                AT_NET_LINE_MAX);
    for (size_t i = 0; i < size; i++)
        if (!is_blank(text[i]) && !isgraph((unsigned char)text[i]))
            return at_net_line_fail(line, fail, "letters other than a-z belong into comments",
                                    "a byte (0x%02x) that cannot be part of a word",
                                    (unsigned char)text[i]);
    return AT_OK;
}

static at_err take_option(at_net_line *line, char *word, char *equals, at_fail *fail)
{
    assert(*equals == '=');
    *equals = '\0';
    if (!*word || !equals[1])
        return at_net_line_fail(line, fail, "options are name=value, without blanks",
                                "\"%s=%s\" is half an option", word, equals + 1);
    for (uint32_t i = 0; i < line->options; i++)
        if (!strcmp(line->option[i].name, word))
            return at_net_line_fail(line, fail, NULL, "%s is said twice", word);
    if (line->options == AT_NET_OPTIONS_MAX)
        return at_net_line_fail(line, fail, NULL, "more than %d options", AT_NET_OPTIONS_MAX);
    line->option[line->options++] = (at_net_option){word, equals + 1};
    return AT_OK;
}

static at_err take_word(at_net_line *line, char *word, at_fail *fail)
{
    assert(*word);
    char *equals = strchr(word, '=');
    if (equals) return take_option(line, word, equals, fail);
    if (line->options)
        return at_net_line_fail(line, fail, "options (name=value) come last",
                                "\"%s\" stands behind an option", word);
    if (line->words == AT_NET_WORDS_MAX)
        return at_net_line_fail(line, fail, "one layer a line; # starts a comment",
                                "\"%s\" is one word too many", word);
    line->word[line->words++] = word;
    return AT_OK;
}

/* Cuts one line; afterwards it has no words when it is empty. */
static at_err cut_line(at_net_line *line, char *text, at_fail *fail)
{
    text[strcspn(text, "#")] = '\0';
    AT_TRY(check_bytes(line, text, fail));
    while (*text) {
        while (is_blank(*text)) text++;
        if (!*text) break;
        char *word = text;
        while (*text && !is_blank(*text)) text++;
        if (*text) *text++ = '\0';
        AT_TRY(take_word(line, word, fail));
    }
    if (line->options && !line->words)
        return at_net_line_fail(line, fail, NULL, "it begins with an option, \"%s\"",
                                line->option[0].name);
    return AT_OK;
}

static size_t count_ends(const char *text)
{
    size_t count = 0;
    for (; *text; text++) count += *text == '\n';
    return count;
}

static at_err cut_lines(char *text, at_net_line *lines, size_t *count, at_fail *fail)
{
    uint32_t number = 0;
    while (text) {
        char *end = strchr(text, '\n');
        if (end) *end = '\0';
        at_net_line line = {.number = ++number};
        AT_TRY(cut_line(&line, text, fail));
        if (line.words) lines[(*count)++] = line;
        text = end ? end + 1 : NULL;
    }
    return AT_OK;
}

at_err at_net_lines(char *text, at_net_line **lines, size_t *count, at_fail *fail)
{
    *count = 0;
    *lines = NULL;
    size_t size = strnlen(text, AT_NET_TEXT_MAX + 1);
    if (size > AT_NET_TEXT_MAX)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "a net has at most %d bytes of text",
                           AT_NET_TEXT_MAX);
    *lines = calloc(count_ends(text) + 1, sizeof **lines);
    if (!*lines) return at_fail_set(fail, AT_ERR_FAILED, NULL, "no memory for the text of a net");
    at_err err = cut_lines(text, *lines, count, fail);
    if (err) {
        free(*lines);
        *lines = NULL;
    }
    return err;
}
