/* Options of layers: name=value. Every one is a row of the table at the end. */
#include "learn/net/net_words.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum {
    NUMBER_DIGITS_MAX = 9,
    NAME_LENGTH_MAX = 30 /* so that name.running_mean fits in an at_tensor */
};

/* ---- numbers --------------------------------------------------------------------------------- */

bool at_net_whole(const char *text, uint32_t min, uint32_t max, uint32_t *value)
{
    size_t   length = strspn(text, "0123456789");
    uint32_t number = 0;
    assert(min <= max);
    if (length == 0 || length > NUMBER_DIGITS_MAX || text[length]) return false;
    for (; *text; text++) number = number * 10 + (uint32_t)(*text - '0');
    if (number < min || number > max) return false;
    *value = number;
    return true;
}

bool at_net_sizes(const char *text, uint32_t *sizes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        char   word[NUMBER_DIGITS_MAX + 1];
        size_t length = strcspn(text, "x");
        if (length >= sizeof word || (i + 1 < count) != (text[length] == 'x')) return false;
        snprintf(word, sizeof word, "%.*s", (int)length, text);
        if (!at_net_whole(word, 1, AT_NET_WIDTH_MAX, &sizes[i])) return false;
        text += length + 1;
    }
    return true;
}

bool at_net_real(const char *text, double min, double max, double *value)
{
    double number;
    if (!at_text_real(text, &number) || !(number >= min && number <= max)) return false;
    *value = number;
    return true;
}

/* ---- options --------------------------------------------------------------------------------- */

static bool read_stride(at_net_said *said, const char *value)
{
    return at_net_whole(value, 1, AT_NET_WINDOW_MAX, &said->spec.window.stride);
}

static bool read_pad(at_net_said *said, const char *value)
{
    at_window *w = &said->spec.window;
    uint32_t   pad = 0;
    said->spec.same = !strcmp(value, "same");
    bool good = said->spec.same || !strcmp(value, "valid") ||
                at_net_whole(value, 0, AT_NET_WINDOW_MAX, &pad);
    w->top = w->left = w->bottom = w->right = pad;
    return good;
}

/* yes, no, or the number it starts with. */
static bool read_bias(at_net_said *said, const char *value)
{
    double number = 0;
    bool   yes = !strcmp(value, "yes"), no = !strcmp(value, "no");
    said->spec.bias = !no;
    if (!yes && !no && !at_net_real(value, -1e6, 1e6, &number)) return false;
    said->spec.bias_start =
        (at_init){.kind = number == 0 ? AT_INIT_ZERO : AT_INIT_CONST, .number = number};
    return true;
}

static bool read_start_into(at_init *start, const char *value)
{
    static const struct {
        const char  *name;
        at_init_kind kind;
        bool         number;
    } rows[] = {{"zero", AT_INIT_ZERO, false},
                {"glorot", AT_INIT_GLOROT, false},
                {"he", AT_INIT_HE, false},
                {"normal", AT_INIT_NORMAL, true},
                {"truncated", AT_INIT_TRUNCATED, true},
                {"const", AT_INIT_CONST, true}};
    size_t length = strcspn(value, ":");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strncmp(rows[i].name, value, length) || rows[i].name[length]) continue;
        *start = (at_init){.kind = rows[i].kind};
        if (!rows[i].number) return !value[length];
        double min = rows[i].kind == AT_INIT_CONST ? -1e6 : 0;
        return value[length] && at_net_real(value + length + 1, min, 1e6, &start->number);
    }
    return false;
}

static bool read_start(at_net_said *said, const char *value)
{
    return read_start_into(&said->spec.start, value);
}

static bool read_projection(at_net_said *said, const char *value)
{
    said->projection_given = true;
    return read_start_into(&said->projection, value);
}

static bool read_keep(at_net_said *said, const char *value)
{
    return at_net_real(value, 1e-3, 1, &said->spec.keep);
}

static bool read_momentum(at_net_said *said, const char *value)
{
    return at_net_real(value, 0, 0.999999, &said->spec.momentum);
}

static bool read_epsilon(at_net_said *said, const char *value)
{
    return at_net_real(value, 1e-12, 1, &said->spec.epsilon);
}

static bool read_norm(at_net_said *said, const char *value)
{
    said->norm = strcmp(value, "bn") ? &at_layer_gn : &at_layer_bn;
    return said->norm == &at_layer_bn ||
           (!strncmp(value, "gn:", 3) &&
            at_net_whole(value + 3, 1, AT_NET_WIDTH_MAX, &said->spec.groups));
}

static bool read_name(at_net_said *said, const char *value)
{
    size_t length = strlen(value);
    said->spec.name = value;
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)value[i]) && !strchr("_-.", value[i])) return false;
    return length <= NAME_LENGTH_MAX;
}

static bool read_group(at_net_said *said, const char *value)
{
    said->spec.group = value;
    return strlen(value) < sizeof((at_group *)NULL)->name;
}

static const struct option {
    const char *name;
    unsigned    bit;
    bool (*read)(at_net_said *said, const char *value);
    const char *usage;
} options[] = {
    {"stride", AT_MAY_STRIDE, read_stride, "stride=2, from 1 to 1024"},
    {"pad", AT_MAY_PAD, read_pad, "pad=same, pad=valid or a number of rows and columns, pad=1"},
    {"bias", AT_MAY_BIAS, read_bias, "bias=yes, bias=no or the number it starts with, bias=0.5"},
    {"start", AT_MAY_START, read_start, "glorot, he, normal:SD, truncated:SD, const:X or zero"},
    {"keep", AT_MAY_KEEP, read_keep, "the share that stays, keep=0.7, from 0.001 to 1"},
    {"momentum", AT_MAY_MOMENTUM, read_momentum,
     "of the running statistics, momentum=0.9, below 1"},
    {"eps", AT_MAY_EPSILON, read_epsilon, "eps=1e-3, above 0"},
    {"norm", AT_MAY_NORM, read_norm, "norm=bn, or norm=gn:32 for 32 groups of channels"},
    {"projection", AT_MAY_PROJECTION, read_projection, "how it starts: glorot, he, normal:SD, .."},
    {"name", AT_MAY_NAME, read_name, "up to 30 letters, digits and _-."},
    {"group", AT_MAY_GROUP, read_group, "up to 23 characters"},
};
enum { OPTIONS = sizeof options / sizeof *options };

static const struct option *find_option(const char *name)
{
    for (size_t i = 0; i < OPTIONS; i++)
        if (!strcmp(options[i].name, name)) return &options[i];
    return NULL;
}

at_err at_net_line_unknown(const at_net_line *line, const char *what, const char *name,
                           const char *const *names, size_t count, at_fail *fail)
{
    at_fail near = {0};
    at_text_unknown(what, name, names, count, &near);
    return at_net_line_fail(line, fail, near.hint, "%s", near.text);
}

static at_err unknown_option(const at_net_line *line, const char *word, unsigned allowed,
                             const char *name, at_fail *fail)
{
    const char *names[OPTIONS];
    size_t      count = 0;
    char        what[64];
    for (size_t i = 0; i < OPTIONS; i++)
        if (options[i].bit & allowed) names[count++] = options[i].name;
    if (!count) return at_net_line_fail(line, fail, NULL, "%s has no options", word);
    snprintf(what, sizeof what, "option of %s", word);
    return at_net_line_unknown(line, what, name, names, count, fail);
}

at_err at_net_options_read(const at_net_line *line, const char *word, unsigned allowed,
                           at_net_said *said, at_fail *fail)
{
    for (uint32_t i = 0; i < line->options; i++) {
        const at_net_option *given = &line->option[i];
        const struct option *option = find_option(given->name);
        if (!option || !(option->bit & allowed))
            return unknown_option(line, word, allowed, given->name, fail);
        if (!option->read(said, given->value))
            return at_net_line_fail(line, fail, option->usage, "%s: %s cannot be %s", word,
                                    given->name, given->value);
    }
    return AT_OK;
}
