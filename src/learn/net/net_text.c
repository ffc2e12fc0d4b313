/* Reads the text of a net. A line is a layer or block (learn/net/net_words.h), or one of the
 * statements below. `repeat` and `residual` are frames on a stack; the lines between them and
 * their `end` are carried out as they come, and a repeat moves back to its begin. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "learn/net/net.h"
#include "learn/net/net_words.h"

enum {
    DEPTH_MAX = 16,
    REPEAT_MAX = 1000,
    SHORTCUTS_MAX = 4,
    STEPS_MAX = 64 * AT_NET_LAYERS_MAX /* lines carried out: nested repeats of nothing must end */
};

/* A repeat or a residual block that is not closed yet. */
typedef struct frame {
    const at_net_line *line;   /* its first */
    uint32_t           left;   /* repeat: how often the lines are still to come, now included */
    int32_t            skip;   /* residual: its input */
    size_t             layers; /* residual: of the net before it */
    uint32_t           shortcuts;
    const at_net_line *shortcut[SHORTCUTS_MAX];
} frame;

typedef struct reading {
    at_net_reader      reader;
    at_net            *net;
    const at_net_line *at, *end; /* the line that is carried out; behind the last */
    size_t             steps;
    uint32_t           depth;
    frame              frame[DEPTH_MAX];
} reading;

typedef struct statement {
    const char *name;
    at_err (*run)(reading *r, const at_net_line *line, at_fail *fail);
} statement;

/* ---- statements ------------------------------------------------------------------------------ */

/* Data decide what a net reads. But numbers in a line may be taken as the picture it was made for,
 * when there are as many. */
static at_err run_input(reading *r, const at_net_line *line, at_fail *fail)
{
    at_net_about  about = {0};
    at_activation in = at_net_out(r->net);
    AT_TRY(at_net_input_read(line, &about, fail));
    if (r->net->count)
        return at_net_line_fail(line, fail, NULL, "input belongs before the first layer");
    bool is_line = at_activation_area(&in) == 1 || (in.channels == 1 && in.height == 1);
    bool to_picture = (uint64_t)about.height * about.width > 1;
    if (!is_line || !to_picture ||
        at_activation_numbers(&in) != (size_t)about.channels * about.height * about.width)
        return AT_OK;
    at_layer_spec spec = {.kind = &at_layer_reshape,
                          .from = AT_FROM_LAST,
                          .units = about.channels,
                          .height = about.height,
                          .width = about.width,
                          .line = line->number};
    return at_net_add(r->net, spec, fail);
}

static at_err run_classes(reading *r, const at_net_line *line, at_fail *fail)
{
    at_net_about about;
    (void)r;
    return at_net_classes_read(line, &about, fail);
}

static at_err run_group(reading *r, const at_net_line *line, at_fail *fail)
{
    return at_net_group_read(r->net, line, fail);
}

static at_err run_default(reading *r, const at_net_line *line, at_fail *fail)
{
    return at_net_default_read(&r->reader, line, fail);
}

static at_err push(reading *r, frame next, at_fail *fail)
{
    if (r->depth == DEPTH_MAX)
        return at_net_line_fail(next.line, fail, NULL, "nested more than %d deep", DEPTH_MAX);
    r->frame[r->depth++] = next;
    return AT_OK;
}

static at_err run_repeat(reading *r, const at_net_line *line, at_fail *fail)
{
    frame next = {.line = line};
    if (line->words != 2 || line->options ||
        !at_net_whole(line->word[1], 1, REPEAT_MAX, &next.left))
        return at_net_line_fail(line, fail, "repeat 3", "a repeat says how often, from 1 to %d",
                                REPEAT_MAX);
    return push(r, next, fail);
}

static at_err run_residual(reading *r, const at_net_line *line, at_fail *fail)
{
    if (line->words != 1 || line->options)
        return at_net_line_fail(line, fail, "its layers follow, one a line, and then `end`",
                                "residual stands alone on its line");
    int32_t skip = at_net_keep(r->net);
    return push(r, (frame){.line = line, .skip = skip, .layers = r->net->count}, fail);
}

/* It is kept for the end of the block: only then the way beside it is complete. */
static at_err run_shortcut(reading *r, const at_net_line *line, at_fail *fail)
{
    frame *top = r->depth ? &r->frame[r->depth - 1] : NULL;
    if (!top || top->left)
        return at_net_line_fail(line, fail, "between `residual` and its `end`",
                                "a shortcut is part of a residual block");
    if (line->words < 2)
        return at_net_line_fail(line, fail, "shortcut conv 1x1x64 stride=2 bias=no",
                                "a shortcut needs a layer");
    if (top->shortcuts == SHORTCUTS_MAX)
        return at_net_line_fail(line, fail, NULL, "more than %d layers in a shortcut",
                                SHORTCUTS_MAX);
    top->shortcut[top->shortcuts++] = line;
    return AT_OK;
}

/* ---- layers ---------------------------------------------------------------------------------- */

/* Whether the tensors of a layer without a name could be called so: a kind and a number. */
static bool is_automatic(const char *name)
{
    const char *names[AT_NET_SAYINGS_MAX];
    size_t      count = at_net_saying_names(names);
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(names[i]);
        if (strncmp(name, names[i], length)) continue;
        if (strspn(name + length, "0123456789") == strlen(name + length)) return true;
    }
    return false;
}

static at_err check_name(const at_net *net, const at_net_line *line, const char *name,
                         at_fail *fail)
{
    if (is_automatic(name))
        return at_net_line_fail(line, fail, "choose another name",
                                "\"%s\" is what a layer without a name is called", name);
    for (size_t i = 0; i < net->count; i++)
        if (net->layer[i].spec.name && !strcmp(net->layer[i].spec.name, name))
            return at_net_line_fail(line, fail, "names are for one layer, so not within a repeat",
                                    "the name \"%s\" was given on line %u", name,
                                    net->layer[i].spec.line);
    return AT_OK;
}

static at_err check_names(const at_net *net, const at_net_line *line, const at_layer_spec *spec,
                          at_fail *fail)
{
    if (spec->name) AT_TRY(check_name(net, line, spec->name, fail));
    if (spec->group && !at_net_group_known(net, spec->group))
        return at_net_line_fail(line, fail, "say before how it learns: group NAME lr=..",
                                "there is no group \"%s\"", spec->group);
    return AT_OK;
}

static at_err unknown_word(const at_net_line *line, at_fail *fail);

/* Adds the layer or block of a line, which reads `from`. */
static at_err add_layer(reading *r, const at_net_line *line, int32_t from, at_fail *fail)
{
    const at_net_saying *saying = at_net_saying_find(line->word[0]);
    at_net_said          said;
    if (!saying) return unknown_word(line, fail);
    AT_TRY(at_net_said_read(&r->reader, saying, line, &said, fail));
    AT_TRY(check_names(r->net, line, &said.spec, fail));
    said.spec.from = from;
    if (said.units_classes) said.spec.units = r->net->shape.classes;
    if (saying->build && from != AT_FROM_LAST)
        return at_net_line_fail(line, fail, NULL, "%s cannot be a shortcut", saying->name);
    if (saying->build) return saying->build(&r->reader, &said, fail);
    return at_net_add(r->net, said.spec, fail);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static at_err run_shortcuts(reading *r, const frame *f, at_fail *fail)
{
    int32_t from = f->skip;
    for (uint32_t i = 0; i < f->shortcuts; i++) {
        at_net_line line = *f->shortcut[i];
        line.words--;
        memmove(line.word, line.word + 1, line.words * sizeof *line.word);
        AT_TRY(add_layer(r, &line, from, fail));
        from = (int32_t)r->net->count - 1;
    }
    return AT_OK;
}

/* The sum is formed in place of what came last. */
static at_err end_residual(reading *r, const frame *f, const at_net_line *line, at_fail *fail)
{
    int32_t other = f->skip;
    if (r->net->count == f->layers)
        return at_net_line_fail(line, fail, NULL, "the residual block of line %u has no layers",
                                f->line->number);
    if (f->shortcuts) {
        other = at_net_keep(r->net);
        AT_TRY(run_shortcuts(r, f, fail));
    }
    return at_net_add(
        r->net,
        (at_layer_spec){
            .kind = &at_layer_add, .from = AT_FROM_LAST, .other = other, .line = line->number},
        fail);
}

static at_err run_end(reading *r, const at_net_line *line, at_fail *fail)
{
    if (line->words != 1 || line->options)
        return at_net_line_fail(line, fail, NULL, "end stands alone on its line");
    if (!r->depth)
        return at_net_line_fail(line, fail, NULL, "there is no repeat or residual to end here");
    frame *top = &r->frame[r->depth - 1];
    if (top->left > 1) {
        top->left--;
        r->at = top->line; /* the next line is the first to be repeated */
        return AT_OK;
    }
    if (!top->left) AT_TRY(end_residual(r, top, line, fail));
    r->depth--;
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
    const char *names[AT_NET_SAYINGS_MAX + STATEMENTS];
    size_t      count = at_net_saying_names(names);
    for (size_t i = 0; i < STATEMENTS; i++) names[count++] = statements[i].name;
    return at_net_line_unknown(line, "layer", line->word[0], names, count, fail);
}

static at_err run_line(reading *r, const at_net_line *line, at_fail *fail)
{
    if (++r->steps > STEPS_MAX)
        return at_net_line_fail(line, fail, "repeat less", "more than %d lines to carry out",
                                STEPS_MAX);
    for (size_t i = 0; i < STATEMENTS; i++)
        if (!strcmp(statements[i].name, line->word[0])) return statements[i].run(r, line, fail);
    return add_layer(r, line, AT_FROM_LAST, fail);
}

static at_err run_lines(reading *r, at_fail *fail)
{
    for (; r->at < r->end; r->at++) AT_TRY(run_line(r, r->at, fail));
    if (r->depth)
        return at_net_line_fail(r->frame[r->depth - 1].line, fail, NULL, "%s has no end",
                                r->frame[r->depth - 1].line->word[0]);
    AT_TRY(at_net_groups_check(r->net, fail));
    return at_net_finish(r->net, fail);
}

at_err at_net_read(at_net *net, const char *name, const char *text, at_fail *fail)
{
    at_net_line *lines = NULL;
    size_t       count = 0;
    reading      r = {.net = net};
    at_fail      own = {0};
    assert(net->count == 0);
    assert(!net->text);
    net->text = strdup(text);
    if (!net->text) return at_fail_set(fail, AT_ERR_FAILED, NULL, "no memory for a net's text");
    at_err err = at_net_lines(net->text, &lines, &count, &own);
    if (!err) {
        at_net_reader_init(&r.reader, net);
        r.at = lines;
        r.end = lines + count;
        err = run_lines(&r, &own);
    }
    free(lines);
    if (err && fail) {
        *fail = own;
        at_net_text_fail(name, fail);
    }
    return err;
}
