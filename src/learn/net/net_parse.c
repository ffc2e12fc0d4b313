/* Parser of .net texts: cuts the text into lines, and executes them one by one. A line is a layer
 * or block (net_words.c) or one of the statements below. `repeat` and `residual` are frames on a
 * stack; the lines up to their `end` are executed as they come, and a repeat jumps back to its
 * first line.
 *
 * Texts are untrusted: every length and count has a limit. */
#include "learn/net/net_parse.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "learn/optim/schedule.h"

enum {
    DEPTH_MAX = 16,
    REPEAT_MAX = 1000,
    SHORTCUTS_MAX = 4,
    STEPS_MAX = 64 * AT_NET_LAYERS_MAX /* lines executed: nested empty repeats must end */
};

/* ---- lines ----------------------------------------------------------------------------------- */

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

at_err at_net_line_unknown(const at_net_line *line, const char *what, const char *name,
                           const char *const *names, size_t count, at_fail *fail)
{
    at_fail near = {0};
    at_text_unknown(what, name, names, count, &near);
    return at_net_line_fail(line, fail, near.hint, "%s", near.text);
}

/* White space between words; \r for files with CRLF line ends. */
static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static at_err check_bytes(const at_net_line *line, const char *text, at_fail *fail)
{
    size_t size = strlen(text);
    if (size > AT_NET_LINE_MAX)
        return at_net_line_fail(line, fail, NULL, "%zu characters, but a line may have at most %d",
                                size, AT_NET_LINE_MAX);
    for (size_t i = 0; i < size; i++)
        if (!is_blank(text[i]) && !isgraph((unsigned char)text[i]))
            return at_net_line_fail(line, fail, "only printable ASCII is allowed outside comments",
                                    "invalid byte 0x%02x", (unsigned char)text[i]);
    return AT_OK;
}

static at_err take_option(at_net_line *line, char *word, char *equals, at_fail *fail)
{
    assert(*equals == '=');
    *equals = '\0';
    if (!*word || !equals[1])
        return at_net_line_fail(line, fail, "write options as name=value, without spaces",
                                "incomplete option \"%s=%s\"", word, equals + 1);
    for (uint32_t i = 0; i < line->options; i++)
        if (!strcmp(line->option[i].name, word))
            return at_net_line_fail(line, fail, NULL, "option %s is given twice", word);
    if (line->options == AT_NET_LINE_OPTIONS_MAX)
        return at_net_line_fail(line, fail, NULL, "more than %d options on a line",
                                AT_NET_LINE_OPTIONS_MAX);
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
                                "\"%s\" comes after an option", word);
    if (line->words == AT_NET_LINE_WORDS_MAX)
        return at_net_line_fail(line, fail, "write one layer per line; # starts a comment",
                                "unexpected word \"%s\"", word);
    line->word[line->words++] = word;
    return AT_OK;
}

/* Cuts one line into words and options; an empty line has no words. */
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
        return at_net_line_fail(line, fail, NULL, "the line starts with an option, \"%s\"",
                                line->option[0].name);
    return AT_OK;
}

static size_t count_line_ends(const char *text)
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

/* Cuts the text in place into the lines that have words. The caller frees *lines. */
static at_err cut_text(char *text, at_net_line **lines, size_t *count, at_fail *fail)
{
    *count = 0;
    *lines = NULL;
    size_t size = strnlen(text, AT_NET_TEXT_MAX + 1);
    if (size > AT_NET_TEXT_MAX)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "the text of a net may have at most %d bytes",
                           AT_NET_TEXT_MAX);
    *lines = calloc(count_line_ends(text) + 1, sizeof **lines);
    if (!*lines) return at_fail_set(fail, AT_ERR_FAILED, NULL, "no memory for the text of a net");
    at_err err = cut_lines(text, *lines, count, fail);
    if (err) {
        free(*lines);
        *lines = NULL;
    }
    return err;
}

/* ---- what a net is made for ------------------------------------------------------------------ */

/* `input 3x32x32`, or `input 100`: 100 channels of height and width 1. */
static at_err parse_input(const at_net_line *line, at_net_info *info, at_fail *fail)
{
    uint32_t size[3] = {0, 1, 1};
    bool     good = line->words == 2 && !line->options &&
                (at_net_sizes(line->word[1], size, 1) || at_net_sizes(line->word[1], size, 3));
    if (!good || (uint64_t)size[0] * size[1] > AT_NET_WIDTH_MAX ||
        (uint64_t)size[0] * size[1] * size[2] > AT_NET_WIDTH_MAX)
        return at_net_line_fail(line, fail, "input 3x32x32 (channels, height, width), or input 100",
                                "invalid input shape");
    info->channels = size[0];
    info->height = size[1];
    info->width = size[2];
    return AT_OK;
}

static at_err parse_classes(const at_net_line *line, at_net_info *info, at_fail *fail)
{
    if (line->words != 2 || line->options ||
        !at_net_whole(line->word[1], 2, AT_NET_WIDTH_MAX, &info->classes))
        return at_net_line_fail(line, fail, "classes 1000", "classes needs a number, at least 2");
    return AT_OK;
}

/* The text after the first #, without control characters, truncated to fit. */
static void read_summary(const char *text, at_net_info *info)
{
    size_t      used = 0;
    const char *c = strchr(text, '#');
    if (!c) return;
    for (c += strspn(c, "# \t"); *c && *c != '\n' && used + 1 < sizeof info->summary; c++)
        if (!iscntrl((unsigned char)*c)) info->summary[used++] = *c;
    /* Never truncate within a multi-byte character. */
    if (((unsigned char)*c & 0xC0) == 0x80) {
        while (used && ((unsigned char)info->summary[used - 1] & 0xC0) == 0x80) used--;
        if (used) used--;
    }
    info->summary[used] = '\0';
}

/* Puts the name of a text in front of an error: "my.net line 12: ..". */
static void prefix_name(const char *name, at_fail *fail)
{
    at_fail inner = *fail;
    bool    has_line = !strncmp(inner.text, "line ", 5);
    at_fail_set(fail, inner.err, inner.hint, has_line ? "%s %s" : "%s: %s", name, inner.text);
}

static at_err read_info(const at_net_line *lines, size_t count, at_net_info *info, at_fail *fail)
{
    for (size_t i = 0; i < count; i++) {
        if (!strcmp(lines[i].word[0], "input")) AT_TRY(parse_input(&lines[i], info, fail));
        if (!strcmp(lines[i].word[0], "classes")) AT_TRY(parse_classes(&lines[i], info, fail));
    }
    return AT_OK;
}

at_err at_net_info_parse(const char *name, const char *text, at_net_info *info, at_fail *fail)
{
    at_net_line *lines = NULL;
    size_t       count = 0;
    at_fail      own = {0};
    char        *copy = strdup(text);
    *info = (at_net_info){0};
    if (!copy) return at_fail_set(fail, AT_ERR_FAILED, NULL, "no memory for the text of a net");
    read_summary(text, info);
    at_err err = cut_text(copy, &lines, &count, &own);
    if (!err) err = read_info(lines, count, info, &own);
    free(lines);
    free(copy);
    if (err && fail) {
        *fail = own;
        prefix_name(name, fail);
    }
    return err;
}

static const char *builtin_text(const char *name)
{
    for (size_t i = 0; i < at_net_builtins_count; i++)
        if (!strcmp(at_net_builtins[i].name, name)) return at_net_builtins[i].text;
    return NULL;
}

at_err at_net_text_find(const char *name, char **text, at_fail *fail)
{
    const char *builtin = builtin_text(name), *end = strrchr(name, '.');
    *text = NULL;
    if (builtin) {
        *text = strdup(builtin);
        return *text ? AT_OK : at_fail_memory(fail);
    }
    if (!end || strcmp(end, ".net") != 0) return AT_OK;
    return at_file_read_text(name, AT_NET_TEXT_MAX, text, fail);
}

at_err at_net_info_find(const char *name, at_net_info *info, at_fail *fail)
{
    char *text;
    *info = (at_net_info){0};
    AT_TRY(at_net_text_find(name, &text, fail));
    at_err err = text ? at_net_info_parse(name, text, info, fail) : AT_OK;
    free(text);
    return err;
}

/* ---- parameter groups ------------------------------------------------------------------------ */

/* The index of the group of that name, added with factors of 1 when it is new; -1 when there are
 * too many. */
static int take_group(at_param_groups *groups, const char *name)
{
    assert(strlen(name) < sizeof groups->group[0].name);
    for (uint32_t i = 0; i < groups->count; i++)
        if (!strcmp(groups->group[i].name, name)) return (int)i;
    if (groups->count == AT_GROUPS_MAX) return -1;
    at_param_group *group = &groups->group[groups->count];
    *group = (at_param_group){.lr = 1, .decay = 1};
    snprintf(group->name, sizeof group->name, "%s", name);
    return (int)groups->count++;
}

static bool is_role(const char *group)
{
    return !strcmp(group, "weights") || !strcmp(group, "biases") || !strcmp(group, "norms");
}

bool at_net_group_known(const at_net *net, const char *name)
{
    const at_param_groups *groups = &net->groups;
    if (is_role(name)) return true;
    for (uint32_t i = 0; i < groups->count; i++)
        if (!strcmp(groups->group[i].name, name)) return true;
    return false;
}

/* Only the syntax is checked: the length of the run is not known yet. */
static at_err read_schedule(at_param_group *group, const at_net_line *line, const char *text,
                            at_fail *fail)
{
    at_schedule schedule;
    at_fail     why = {0};
    if (strlen(text) >= sizeof group->schedule)
        return at_net_line_fail(line, fail, NULL, "a schedule may have at most %zu characters",
                                sizeof group->schedule - 1);
    if (at_schedule_parse(text, 1, 1, HUGE_VAL, &schedule, &why))
        return at_net_line_fail(line, fail, why.hint, "%s", why.text);
    snprintf(group->schedule, sizeof group->schedule, "%s", text);
    return AT_OK;
}

static at_err read_setting(at_param_group *group, const at_net_line *line,
                           const at_net_option *option, at_fail *fail)
{
    static const char *const names[] = {"lr", "decay", "momentum", "schedule"};
    bool                     good;
    if (!strcmp(option->name, "schedule")) return read_schedule(group, line, option->value, fail);
    if (!strcmp(option->name, "lr")) {
        good = at_net_real(option->value, 0, 1e6, &group->lr);
    } else if (!strcmp(option->name, "decay")) {
        good = at_net_real(option->value, 0, 1e6, &group->decay);
    } else if (!strcmp(option->name, "momentum")) {
        good = at_net_real(option->value, 0, 0.999999, &group->momentum);
    } else {
        return at_net_line_unknown(line, "group setting", option->name, names, 4, fail);
    }
    if (good) return AT_OK;
    return at_net_line_fail(line, fail, "lr and decay are factors, momentum is below 1",
                            "invalid %s \"%s\"", option->name, option->value);
}

/* `group biases lr=2 decay=0` */
static at_err parse_group(at_net *net, const at_net_line *line, at_fail *fail)
{
    at_param_groups *groups = &net->groups;
    if (line->words != 2 || !line->options || strlen(line->word[1]) >= sizeof groups->group[0].name)
        return at_net_line_fail(
            line, fail, "group biases lr=2 decay=0",
            "a group needs a name of up to 23 characters and at least one setting");
    int index = take_group(groups, line->word[1]);
    if (index < 0) return at_net_line_fail(line, fail, NULL, "more than %d groups", AT_GROUPS_MAX);
    for (uint32_t i = 0; i < line->options; i++)
        AT_TRY(read_setting(&groups->group[index], line, &line->option[i], fail));
    return AT_OK;
}

/* A group without layers is a mistake in the text. */
static at_err check_groups(const at_net *net, at_fail *fail)
{
    for (uint32_t g = 0; g < net->groups.count; g++) {
        const char *name = net->groups.group[g].name;
        bool        used = is_role(name);
        for (size_t i = 0; i < net->count && !used; i++)
            used = net->layer[i].spec.group && !strcmp(net->layer[i].spec.group, name);
        if (!used)
            return at_fail_set(fail, AT_ERR_USAGE,
                               "weights, biases and norms are built in; layers join other groups "
                               "with group=NAME",
                               "no layer is in the group \"%s\"", name);
    }
    return AT_OK;
}

/* ---- statements ------------------------------------------------------------------------------ */

/* An open repeat or residual block. */
typedef struct frame {
    const at_net_line *line;   /* the `repeat` or `residual` line */
    uint32_t           left;   /* repeat: iterations left, including this one; 0: residual */
    int32_t            skip;   /* residual: the layer whose output it reads */
    size_t             layers; /* residual: layers of the net before it */
    uint32_t           shortcuts;
    const at_net_line *shortcut[SHORTCUTS_MAX];
} frame;

typedef struct parse_state {
    at_net_parser      parser;
    const at_net_line *at, *end; /* the current line; one past the last */
    size_t             steps;    /* lines executed so far */
    uint32_t           depth;
    frame              frame[DEPTH_MAX];
} parse_state;

typedef struct statement {
    const char *name;
    at_err (*run)(parse_state *state, const at_net_line *line, at_fail *fail);
} statement;

/* The data set decides the input shape. But flat samples are reshaped to the image size that the
 * net was made for when the sizes match. */
static at_err run_input(parse_state *state, const at_net_line *line, at_fail *fail)
{
    at_net_info   info = {0};
    at_activation in = at_net_output(state->parser.net);
    AT_TRY(parse_input(line, &info, fail));
    if (state->parser.net->count)
        return at_net_line_fail(line, fail, NULL, "input must come before the first layer");
    bool is_flat = at_activation_area(&in) == 1 || (in.channels == 1 && in.height == 1);
    bool is_image = (uint64_t)info.height * info.width > 1;
    if (!is_flat || !is_image ||
        at_activation_numbers(&in) != (size_t)info.channels * info.height * info.width)
        return AT_OK;
    at_layer_spec spec = {.kind = &at_layer_reshape,
                          .from = AT_FROM_LAST,
                          .units = info.channels,
                          .height = info.height,
                          .width = info.width,
                          .line = line->number};
    return at_net_add(state->parser.net, spec, fail);
}

static at_err run_classes(parse_state *state, const at_net_line *line, at_fail *fail)
{
    at_net_info info;
    (void)state;
    return parse_classes(line, &info, fail);
}

static at_err run_group(parse_state *state, const at_net_line *line, at_fail *fail)
{
    return parse_group(state->parser.net, line, fail);
}

static at_err run_default(parse_state *state, const at_net_line *line, at_fail *fail)
{
    return at_net_default_parse(&state->parser, line, fail);
}

static at_err push(parse_state *state, frame next, at_fail *fail)
{
    if (state->depth == DEPTH_MAX)
        return at_net_line_fail(next.line, fail, NULL, "nested more than %d levels deep",
                                DEPTH_MAX);
    state->frame[state->depth++] = next;
    return AT_OK;
}

static at_err run_repeat(parse_state *state, const at_net_line *line, at_fail *fail)
{
    frame next = {.line = line};
    if (line->words != 2 || line->options ||
        !at_net_whole(line->word[1], 1, REPEAT_MAX, &next.left))
        return at_net_line_fail(line, fail, "repeat 3", "repeat needs a count from 1 to %d",
                                REPEAT_MAX);
    return push(state, next, fail);
}

static at_err run_residual(parse_state *state, const at_net_line *line, at_fail *fail)
{
    if (line->words != 1 || line->options)
        return at_net_line_fail(line, fail, "put its layers on the following lines, then `end`",
                                "residual must be alone on its line");
    int32_t skip = at_net_keep_output(state->parser.net);
    return push(state, (frame){.line = line, .skip = skip, .layers = state->parser.net->count},
                fail);
}

/* Shortcut layers are added at the end of the block, after its main path. */
static at_err run_shortcut(parse_state *state, const at_net_line *line, at_fail *fail)
{
    frame *top = state->depth ? &state->frame[state->depth - 1] : NULL;
    if (!top || top->left)
        return at_net_line_fail(line, fail, "put it between `residual` and its `end`",
                                "shortcut outside a residual block");
    if (line->words < 2)
        return at_net_line_fail(line, fail, "shortcut conv 1x1x64 stride=2 bias=no",
                                "a shortcut needs a layer");
    if (top->shortcuts == SHORTCUTS_MAX)
        return at_net_line_fail(line, fail, NULL, "more than %d layers in a shortcut",
                                SHORTCUTS_MAX);
    top->shortcut[top->shortcuts++] = line;
    return AT_OK;
}

static at_err unknown_word(const at_net_line *line, at_fail *fail);

/* Adds the layer or block of a line, which reads the output of layer `from`. */
static at_err add_layer(parse_state *state, const at_net_line *line, int32_t from, at_fail *fail)
{
    if (!at_net_word_exists(line->word[0])) return unknown_word(line, fail);
    return at_net_layer_add(&state->parser, line, from, fail);
}

static at_err add_shortcuts(parse_state *state, const frame *f, at_fail *fail)
{
    int32_t from = f->skip;
    for (uint32_t i = 0; i < f->shortcuts; i++) {
        at_net_line line = *f->shortcut[i];
        line.words--;
        memmove(line.word, line.word + 1, line.words * sizeof *line.word);
        AT_TRY(add_layer(state, &line, from, fail));
        from = (int32_t)state->parser.net->count - 1;
    }
    return AT_OK;
}

/* The sum is computed in the buffer of the last layer. */
static at_err end_residual(parse_state *state, const frame *f, const at_net_line *line,
                           at_fail *fail)
{
    int32_t other = f->skip;
    if (state->parser.net->count == f->layers)
        return at_net_line_fail(line, fail, NULL, "the residual block of line %u has no layers",
                                f->line->number);
    if (f->shortcuts) {
        other = at_net_keep_output(state->parser.net);
        AT_TRY(add_shortcuts(state, f, fail));
    }
    return at_net_add(
        state->parser.net,
        (at_layer_spec){
            .kind = &at_layer_add, .from = AT_FROM_LAST, .other = other, .line = line->number},
        fail);
}

static at_err run_end(parse_state *state, const at_net_line *line, at_fail *fail)
{
    if (line->words != 1 || line->options)
        return at_net_line_fail(line, fail, NULL, "end must be alone on its line");
    if (!state->depth)
        return at_net_line_fail(line, fail, NULL, "end without a repeat or residual");
    frame *top = &state->frame[state->depth - 1];
    if (top->left > 1) {
        top->left--;
        state->at = top->line; /* continue with the first repeated line */
        return AT_OK;
    }
    if (!top->left) AT_TRY(end_residual(state, top, line, fail));
    state->depth--;
    return AT_OK;
}

/* ---- the whole text -------------------------------------------------------------------------- */

static const statement statements[] = {
    {"input", run_input},       {"classes", run_classes}, {"group", run_group},
    {"default", run_default},   {"repeat", run_repeat},   {"residual", run_residual},
    {"shortcut", run_shortcut}, {"end", run_end},
};
enum { STATEMENTS = sizeof statements / sizeof *statements };

static at_err unknown_word(const at_net_line *line, at_fail *fail)
{
    const char *names[AT_NET_WORDS_MAX + STATEMENTS];
    size_t      count = at_net_word_names(names);
    for (size_t i = 0; i < STATEMENTS; i++) names[count++] = statements[i].name;
    return at_net_line_unknown(line, "layer", line->word[0], names, count, fail);
}

static at_err run_line(parse_state *state, const at_net_line *line, at_fail *fail)
{
    if (++state->steps > STEPS_MAX)
        return at_net_line_fail(line, fail, "use fewer or smaller repeats",
                                "more than %d lines to execute", STEPS_MAX);
    for (size_t i = 0; i < STATEMENTS; i++)
        if (!strcmp(statements[i].name, line->word[0])) return statements[i].run(state, line, fail);
    return add_layer(state, line, AT_FROM_LAST, fail);
}

static at_err run_lines(parse_state *state, at_fail *fail)
{
    for (; state->at < state->end; state->at++) AT_TRY(run_line(state, state->at, fail));
    if (state->depth)
        return at_net_line_fail(state->frame[state->depth - 1].line, fail, NULL, "%s has no end",
                                state->frame[state->depth - 1].line->word[0]);
    AT_TRY(check_groups(state->parser.net, fail));
    return at_net_finish(state->parser.net, fail);
}

at_err at_net_parse(at_net *net, const char *name, const char *text, at_fail *fail)
{
    at_net_line *lines = NULL;
    size_t       count = 0;
    parse_state  state = {0};
    at_fail      own = {0};
    assert(net->count == 0);
    assert(!net->text);
    net->text = strdup(text);
    if (!net->text)
        return at_fail_set(fail, AT_ERR_FAILED, NULL, "no memory for the text of a net");
    at_err err = cut_text(net->text, &lines, &count, &own);
    if (!err) {
        at_net_parser_init(&state.parser, net);
        state.at = lines;
        state.end = lines + count;
        err = run_lines(&state, &own);
    }
    free(lines);
    if (err && fail) {
        *fail = own;
        prefix_name(name, fail);
    }
    return err;
}
