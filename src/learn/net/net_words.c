/* Layers and blocks of .net texts: one table row per word, the options they take, and the layers a
 * block consists of.
 *
 *     basic 64                    bottleneck 64               wide 32 (pre-activation)
 *
 *       ├────────────┐              ├────────────┐              ├────────────┐ (same shape)
 *     conv 3x3x64    │            conv 1x1x64    │            norm, relu     │
 *     norm, relu     │            norm, relu     │              ├─ conv 1x1x32 (other shape)
 *     conv 3x3x64    │            conv 3x3x64    │            conv 3x3x32    │
 *     norm           │            norm, relu     │            norm, relu     │
 *       │       conv 1x1x64,      conv 1x1x256   │            conv 3x3x32    │
 *       │       norm (*)          norm           │              │            │
 *       ├────────────┘              ├────────────┘              ├────────────┘
 *     add, relu                   add, relu                   add
 *
 * (*) the projection: only where the shape changes. The first two are He et al. 2015 (the stride is
 * that of the first 3x3), the third is Zagoruyko and Komodakis 2016, whose projection reads the
 * output of the first norm and ReLU. Convolutions have no bias: the norms have one.
 */
#include "learn/net/net_parse.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum {
    NUMBER_DIGITS_MAX = 9,
    NAME_LENGTH_MAX = 30 /* so that NAME.running_mean fits in an at_tensor */
};

/* Options, as bits. */
enum {
    OPTION_STRIDE = 1,
    OPTION_PAD = 2,
    OPTION_BIAS = 4,
    OPTION_START = 8,
    OPTION_KEEP = 16,
    OPTION_MOMENTUM = 32,
    OPTION_EPSILON = 64,
    OPTION_NORM = 128,
    OPTION_PROJECTION = 256,
    OPTION_NAME = 512,
    OPTION_GROUP = 1024
};

/* A word that names a layer or block. */
typedef struct net_word {
    const char          *name;
    const at_layer_kind *kind;     /* NULL: `build` adds the layers */
    unsigned             options;  /* bits of those it takes */
    const char          *usage;    /* an example, for hints */
    at_net_parsed        defaults; /* `default` lines change a copy of it */
    /* Parses the size after the name; NULL: the word has no size. False when it is invalid. */
    bool (*size)(at_net_parsed *parsed, const char *text);
    /* Adds its layers; NULL: it is one layer, added as parsed. */
    at_err (*build)(at_net_parser *parser, const at_net_parsed *parsed, at_fail *fail);
} net_word;

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

static bool read_stride(at_net_parsed *parsed, const char *value)
{
    return at_net_whole(value, 1, AT_NET_WINDOW_MAX, &parsed->spec.window.stride);
}

static bool read_pad(at_net_parsed *parsed, const char *value)
{
    at_window *w = &parsed->spec.window;
    uint32_t   pad = 0;
    parsed->spec.same = !strcmp(value, "same");
    bool good = parsed->spec.same || !strcmp(value, "valid") ||
                at_net_whole(value, 0, AT_NET_WINDOW_MAX, &pad);
    w->top = w->left = w->bottom = w->right = pad;
    return good;
}

/* yes, no, or the initial value. */
static bool read_bias(at_net_parsed *parsed, const char *value)
{
    double number = 0;
    bool   yes = !strcmp(value, "yes"), no = !strcmp(value, "no");
    parsed->spec.bias = !no;
    if (!yes && !no && !at_net_real(value, -1e6, 1e6, &number)) return false;
    parsed->spec.bias_init =
        (at_initializer){.kind = number == 0 ? AT_INIT_ZERO : AT_INIT_CONST, .number = number};
    return true;
}

static bool read_init(at_initializer *init, const char *value)
{
    static const struct {
        const char         *name;
        at_initializer_kind kind;
        bool                number;
    } rows[] = {{"zero", AT_INIT_ZERO, false},
                {"glorot", AT_INIT_GLOROT, false},
                {"he", AT_INIT_HE, false},
                {"normal", AT_INIT_NORMAL, true},
                {"truncated", AT_INIT_TRUNCATED, true},
                {"const", AT_INIT_CONST, true}};
    size_t length = strcspn(value, ":");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strncmp(rows[i].name, value, length) || rows[i].name[length]) continue;
        *init = (at_initializer){.kind = rows[i].kind};
        if (!rows[i].number) return !value[length];
        double min = rows[i].kind == AT_INIT_CONST ? -1e6 : 0;
        return value[length] && at_net_real(value + length + 1, min, 1e6, &init->number);
    }
    return false;
}

static bool read_start(at_net_parsed *parsed, const char *value)
{
    return read_init(&parsed->spec.init, value);
}

static bool read_projection(at_net_parsed *parsed, const char *value)
{
    parsed->projection_given = true;
    return read_init(&parsed->projection, value);
}

static bool read_keep(at_net_parsed *parsed, const char *value)
{
    return at_net_real(value, 1e-3, 1, &parsed->spec.keep);
}

static bool read_momentum(at_net_parsed *parsed, const char *value)
{
    return at_net_real(value, 0, 0.999999, &parsed->spec.momentum);
}

static bool read_epsilon(at_net_parsed *parsed, const char *value)
{
    return at_net_real(value, 1e-12, 1, &parsed->spec.epsilon);
}

static bool read_norm(at_net_parsed *parsed, const char *value)
{
    parsed->norm = strcmp(value, "bn") ? &at_layer_gn : &at_layer_bn;
    return parsed->norm == &at_layer_bn ||
           (!strncmp(value, "gn:", 3) &&
            at_net_whole(value + 3, 1, AT_NET_WIDTH_MAX, &parsed->spec.groups));
}

static bool read_name(at_net_parsed *parsed, const char *value)
{
    size_t length = strlen(value);
    parsed->spec.name = value;
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)value[i]) && !strchr("_-.", value[i])) return false;
    return length <= NAME_LENGTH_MAX;
}

static bool read_group(at_net_parsed *parsed, const char *value)
{
    parsed->spec.group = value;
    return strlen(value) < sizeof((at_param_group *)NULL)->name;
}

static const struct option {
    const char *name;
    unsigned    bit;
    bool (*read)(at_net_parsed *parsed, const char *value);
    const char *usage;
} options[] = {
    {"stride", OPTION_STRIDE, read_stride, "stride=2, from 1 to 1024"},
    {"pad", OPTION_PAD, read_pad, "pad=same, pad=valid, or a number of rows and columns: pad=1"},
    {"bias", OPTION_BIAS, read_bias, "bias=yes, bias=no, or its initial value: bias=0.5"},
    {"start", OPTION_START, read_start, "glorot, he, normal:SD, truncated:SD, const:X or zero"},
    {"keep", OPTION_KEEP, read_keep, "the fraction to keep: keep=0.7, from 0.001 to 1"},
    {"momentum", OPTION_MOMENTUM, read_momentum,
     "momentum of the running statistics: momentum=0.9, below 1"},
    {"eps", OPTION_EPSILON, read_epsilon, "eps=1e-3, above 0"},
    {"norm", OPTION_NORM, read_norm, "norm=bn, or norm=gn:32 for 32 groups of channels"},
    {"projection", OPTION_PROJECTION, read_projection,
     "its initialization: glorot, he, normal:SD, .."},
    {"name", OPTION_NAME, read_name, "up to 30 letters, digits and _-."},
    {"group", OPTION_GROUP, read_group, "up to 23 characters"},
};
enum { OPTIONS = sizeof options / sizeof *options };

static const struct option *find_option(const char *name)
{
    for (size_t i = 0; i < OPTIONS; i++)
        if (!strcmp(options[i].name, name)) return &options[i];
    return NULL;
}

static at_err unknown_option(const at_net_line *line, const char *word, unsigned allowed,
                             const char *name, at_fail *fail)
{
    const char *names[OPTIONS];
    size_t      count = 0;
    char        what[64];
    for (size_t i = 0; i < OPTIONS; i++)
        if (options[i].bit & allowed) names[count++] = options[i].name;
    if (!count) return at_net_line_fail(line, fail, NULL, "%s takes no options", word);
    snprintf(what, sizeof what, "option of %s", word);
    return at_net_line_unknown(line, what, name, names, count, fail);
}

static at_err parse_options(const at_net_line *line, const char *word, unsigned allowed,
                            at_net_parsed *parsed, at_fail *fail)
{
    for (uint32_t i = 0; i < line->options; i++) {
        const at_net_option *given = &line->option[i];
        const struct option *option = find_option(given->name);
        if (!option || !(option->bit & allowed))
            return unknown_option(line, word, allowed, given->name, fail);
        if (!option->read(parsed, given->value))
            return at_net_line_fail(line, fail, option->usage, "%s: invalid %s \"%s\"", word,
                                    given->name, given->value);
    }
    return AT_OK;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* 5x5x32: height, width, channels. */
static bool size_conv(at_net_parsed *parsed, const char *text)
{
    uint32_t size[3];
    if (!at_net_sizes(text, size, 3) || size[0] > AT_NET_WINDOW_MAX || size[1] > AT_NET_WINDOW_MAX)
        return false;
    parsed->spec.window.height = size[0];
    parsed->spec.window.width = size[1];
    parsed->spec.units = size[2];
    return true;
}

/* 2 or 3x3. The default stride is the size of a square window. */
static bool size_pool(at_net_parsed *parsed, const char *text)
{
    at_window *w = &parsed->spec.window;
    uint32_t   size[2];
    if (at_net_sizes(text, size, 1))
        size[1] = size[0];
    else if (!at_net_sizes(text, size, 2))
        return false;
    if (size[0] > AT_NET_WINDOW_MAX || size[1] > AT_NET_WINDOW_MAX) return false;
    w->height = size[0];
    w->width = size[1];
    if (!w->stride && size[0] == size[1]) w->stride = size[0];
    return w->stride > 0;
}

static bool size_avgpool(at_net_parsed *parsed, const char *text)
{
    if (strcmp(text, "all")) return size_pool(parsed, text);
    parsed->spec.window = (at_window){.stride = 1};
    return true;
}

static bool size_units(at_net_parsed *parsed, const char *text)
{
    return at_net_whole(text, 1, AT_NET_WIDTH_MAX, &parsed->spec.units);
}

static bool size_dense(at_net_parsed *parsed, const char *text)
{
    parsed->units_classes = !strcmp(text, "classes");
    return parsed->units_classes || size_units(parsed, text);
}

static bool size_groups(at_net_parsed *parsed, const char *text)
{
    return at_net_whole(text, 1, AT_NET_WIDTH_MAX, &parsed->spec.groups);
}

static bool size_reshape(at_net_parsed *parsed, const char *text)
{
    uint32_t size[3];
    if (!at_net_sizes(text, size, 3)) return false;
    parsed->spec.units = size[0];
    parsed->spec.height = size[1];
    parsed->spec.width = size[2];
    return true;
}

static bool size_resize(at_net_parsed *parsed, const char *text)
{
    uint32_t size[2];
    if (at_net_sizes(text, size, 1))
        size[1] = size[0];
    else if (!at_net_sizes(text, size, 2))
        return false;
    parsed->spec.height = size[0];
    parsed->spec.width = size[1];
    return true;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static const at_net_parsed *default_of(const at_net_parser *parser, const at_layer_kind *kind);

/* A block under construction. */
typedef struct block {
    at_net_parser       *parser;
    const at_net_parsed *parsed;
    at_fail             *fail;
    int32_t              skip; /* the layer that its projection or its sum reads */
    bool                 projects;
} block;

static at_err add(const block *b, at_layer_spec spec)
{
    spec.line = b->parsed->spec.line;
    spec.group = spec.group ? spec.group : b->parsed->spec.group;
    return at_net_add(b->parser->net, spec, b->fail);
}

static at_err add_relu(const block *b)
{
    return add(b, (at_layer_spec){.kind = &at_layer_relu, .from = AT_FROM_LAST});
}

static at_err add_norm(const block *b)
{
    at_layer_spec spec = default_of(b->parser, b->parsed->norm)->spec;
    spec.groups = b->parsed->spec.groups;
    return add(b, spec);
}

/* A square convolution; 1x1 is not padded. */
static at_err add_conv(const block *b, uint32_t size, uint32_t units, uint32_t stride)
{
    at_layer_spec spec = default_of(b->parser, &at_layer_conv)->spec;
    spec.window = size > 1 ? b->parsed->spec.window : (at_window){0};
    spec.same = size > 1 && b->parsed->spec.same;
    spec.window.height = spec.window.width = size;
    spec.window.stride = stride;
    spec.units = units;
    spec.bias = false;
    return add(b, spec);
}

static at_err add_projection(const block *b, uint32_t units)
{
    at_layer_spec spec = default_of(b->parser, &at_layer_conv)->spec;
    assert(b->projects);
    spec.from = b->skip;
    spec.window = (at_window){.height = 1, .width = 1, .stride = b->parsed->spec.window.stride};
    spec.same = false;
    spec.units = units;
    spec.bias = false;
    if (b->parsed->projection_given) spec.init = b->parsed->projection;
    return add(b, spec);
}

static at_err add_sum(const block *b, int32_t other)
{
    return add(b, (at_layer_spec){.kind = &at_layer_add, .from = AT_FROM_LAST, .other = other});
}

/* The projection, if any, and the sum. The projection comes last, so that the sum can be computed
 * in its buffer. */
static at_err finish(const block *b, uint32_t units, bool norm)
{
    if (!b->projects) return add_sum(b, b->skip);
    int32_t main = at_net_keep_output(b->parser->net);
    AT_TRY(add_projection(b, units));
    if (norm) AT_TRY(add_norm(b));
    return add_sum(b, main);
}

static block begin(at_net_parser *parser, const at_net_parsed *parsed, uint32_t units,
                   at_fail *fail)
{
    assert(parsed->norm);
    bool projects = at_net_output(parser->net).channels != units || parsed->spec.window.stride != 1;
    return (block){.parser = parser, .parsed = parsed, .fail = fail, .projects = projects};
}

static at_err build_basic(at_net_parser *parser, const at_net_parsed *parsed, at_fail *fail)
{
    uint32_t units = parsed->spec.units;
    block    b = begin(parser, parsed, units, fail);
    b.skip = at_net_keep_output(parser->net);
    AT_TRY(add_conv(&b, 3, units, parsed->spec.window.stride));
    AT_TRY(add_norm(&b));
    AT_TRY(add_relu(&b));
    AT_TRY(add_conv(&b, 3, units, 1));
    AT_TRY(add_norm(&b));
    AT_TRY(finish(&b, units, true));
    return add_relu(&b);
}

/* 1x1 convolutions around a 3x3; ends with four times the channels. */
static at_err build_bottleneck(at_net_parser *parser, const at_net_parsed *parsed, at_fail *fail)
{
    uint32_t units = parsed->spec.units, out = 4 * units;
    block    b = begin(parser, parsed, out, fail);
    b.skip = at_net_keep_output(parser->net);
    AT_TRY(add_conv(&b, 1, units, 1));
    AT_TRY(add_norm(&b));
    AT_TRY(add_relu(&b));
    AT_TRY(add_conv(&b, 3, units, parsed->spec.window.stride));
    AT_TRY(add_norm(&b));
    AT_TRY(add_relu(&b));
    AT_TRY(add_conv(&b, 1, out, 1));
    AT_TRY(add_norm(&b));
    AT_TRY(finish(&b, out, true));
    return add_relu(&b);
}

/* Pre-activation: norm and ReLU come before the convolutions. */
static at_err build_wide(at_net_parser *parser, const at_net_parsed *parsed, at_fail *fail)
{
    uint32_t units = parsed->spec.units;
    block    b = begin(parser, parsed, units, fail);
    if (!b.projects) b.skip = at_net_keep_output(parser->net);
    AT_TRY(add_norm(&b));
    AT_TRY(add_relu(&b));
    if (b.projects) b.skip = at_net_keep_output(parser->net);
    AT_TRY(add_conv(&b, 3, units, parsed->spec.window.stride));
    AT_TRY(add_norm(&b));
    AT_TRY(add_relu(&b));
    AT_TRY(add_conv(&b, 3, units, 1));
    return finish(&b, units, false);
}

/* Images that have three channels need no layer. */
static at_err build_rgb(at_net_parser *parser, const at_net_parsed *parsed, at_fail *fail)
{
    at_layer_spec spec = parsed->spec;
    if (at_net_output(parser->net).channels == 3) return AT_OK;
    spec.kind = &at_layer_rgb;
    return at_net_add(parser->net, spec, fail);
}

/* Images that have the size need no layer. */
static at_err build_resize(at_net_parser *parser, const at_net_parsed *parsed, at_fail *fail)
{
    at_activation out = at_net_output(parser->net);
    at_layer_spec spec = parsed->spec;
    if (out.height == spec.height && out.width == spec.width) return AT_OK;
    spec.kind = &at_layer_resize;
    return at_net_add(parser->net, spec, fail);
}

/* ---- words ----------------------------------------------------------------------------------- */

#define GLOROT                 \
    {                          \
        .kind = AT_INIT_GLOROT \
    }

enum {
    OPTIONS_PARAMS = OPTION_NAME | OPTION_GROUP, /* everything that has parameters */
    OPTIONS_WINDOW = OPTION_STRIDE | OPTION_PAD,
    OPTIONS_BLOCK = OPTIONS_WINDOW | OPTION_NORM | OPTION_PROJECTION | OPTION_GROUP
};

/* Defaults are TensorFlow's, except for ResNet's blocks and the eps of gn, which are PyTorch's. */
static const net_word words[] = {
    {.name = "conv",
     .kind = &at_layer_conv,
     .options = OPTIONS_WINDOW | OPTION_BIAS | OPTION_START | OPTIONS_PARAMS,
     .usage = "conv 5x5x32: height, width, channels",
     .defaults.spec = {.window = {.stride = 1}, .same = true, .bias = true, .init = GLOROT},
     .size = size_conv},
    {.name = "dense",
     .kind = &at_layer_dense,
     .options = OPTION_BIAS | OPTION_START | OPTIONS_PARAMS,
     .usage = "dense 1024, or dense classes",
     .defaults.spec = {.bias = true, .init = GLOROT},
     .size = size_dense},
    {.name = "relu", .kind = &at_layer_relu, .usage = "relu"},
    {.name = "maxpool",
     .kind = &at_layer_maxpool,
     .options = OPTIONS_WINDOW,
     .usage = "maxpool 2, or maxpool 3x2 stride=2 (only square windows have a default stride)",
     .size = size_pool},
    {.name = "avgpool",
     .kind = &at_layer_avgpool,
     .options = OPTIONS_WINDOW,
     .usage = "avgpool 2, or avgpool all for the whole image",
     .size = size_avgpool},
    {.name = "dropout",
     .kind = &at_layer_dropout,
     .options = OPTION_KEEP,
     .usage = "dropout keep=0.5",
     .defaults.spec = {.keep = 0.5}},
    {.name = "bn",
     .kind = &at_layer_bn,
     .options = OPTION_MOMENTUM | OPTION_EPSILON | OPTIONS_PARAMS,
     .usage = "bn momentum=0.9",
     .defaults.spec = {.momentum = 0.9, .epsilon = 1e-3}},
    {.name = "gn",
     .kind = &at_layer_gn,
     .options = OPTION_EPSILON | OPTIONS_PARAMS,
     .usage = "gn 32, for 32 groups of channels",
     .defaults.spec = {.epsilon = 1e-5},
     .size = size_groups},
    {.name = "flatten", .kind = &at_layer_flatten, .usage = "flatten"},
    {.name = "reshape",
     .kind = &at_layer_reshape,
     .usage = "reshape 1x10x10: channels, height, width",
     .size = size_reshape},
    {.name = "resize",
     .usage = "resize 224, or resize 224x224",
     .size = size_resize,
     .build = build_resize},
    {.name = "rgb", .usage = "rgb", .build = build_rgb},
    {.name = "basic",
     .options = OPTIONS_BLOCK,
     .usage = "basic 64 stride=2",
     .defaults = {.spec.window = {.stride = 1, .top = 1, .left = 1, .bottom = 1, .right = 1},
                  .norm = &at_layer_bn},
     .size = size_units,
     .build = build_basic},
    {.name = "bottleneck",
     .options = OPTIONS_BLOCK,
     .usage = "bottleneck 64 stride=2",
     .defaults = {.spec.window = {.stride = 1, .top = 1, .left = 1, .bottom = 1, .right = 1},
                  .norm = &at_layer_bn},
     .size = size_units,
     .build = build_bottleneck},
    {.name = "wide",
     .options = OPTIONS_BLOCK,
     .usage = "wide 64 stride=2",
     .defaults = {.spec = {.window = {.stride = 1}, .same = true}, .norm = &at_layer_bn},
     .size = size_units,
     .build = build_wide},
};
enum { WORDS = sizeof words / sizeof *words };
_Static_assert((int)WORDS <= (int)AT_NET_WORDS_MAX, "a parser has defaults for every word");

void at_net_parser_init(at_net_parser *parser, at_net *net)
{
    assert(net->count == 0);
    *parser = (at_net_parser){.net = net};
    for (size_t i = 0; i < WORDS; i++) {
        parser->defaults[i] = words[i].defaults;
        parser->defaults[i].spec.kind = words[i].kind;
        parser->defaults[i].spec.from = AT_FROM_LAST;
    }
}

static const net_word *find_word(const char *name)
{
    for (size_t i = 0; i < WORDS; i++)
        if (!strcmp(words[i].name, name)) return &words[i];
    return NULL;
}

bool at_net_word_exists(const char *name)
{
    return find_word(name) != NULL;
}

size_t at_net_word_names(const char **names)
{
    for (size_t i = 0; i < WORDS; i++) names[i] = words[i].name;
    return WORDS;
}

static const at_net_parsed *default_of(const at_net_parser *parser, const at_layer_kind *kind)
{
    size_t i = 0;
    while (i < WORDS && words[i].kind != kind) i++;
    assert(i < WORDS);
    return &parser->defaults[i];
}

static at_err parse_line(const at_net_parser *parser, const net_word *word, const at_net_line *line,
                         at_net_parsed *parsed, at_fail *fail)
{
    uint32_t sizes = word->size ? 1 : 0;
    *parsed = parser->defaults[word - words];
    parsed->spec.line = line->number;
    AT_TRY(parse_options(line, word->name, word->options, parsed, fail));
    if (line->words < 1 + sizes)
        return at_net_line_fail(line, fail, word->usage, "%s needs a size", word->name);
    if (line->words > 1 + sizes)
        return at_net_line_fail(line, fail, word->usage, "unexpected word \"%s\" after %s",
                                line->word[1 + sizes], word->name);
    if (word->size && !word->size(parsed, line->word[1]))
        return at_net_line_fail(line, fail, word->usage, "%s: invalid size \"%s\"", word->name,
                                line->word[1]);
    return AT_OK;
}

/* Whether an unnamed layer could get this name: a kind and a number. */
static bool is_automatic(const char *name)
{
    const char *names[AT_NET_WORDS_MAX];
    size_t      count = at_net_word_names(names);
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
                                "\"%s\" is reserved for unnamed layers", name);
    for (size_t i = 0; i < net->count; i++)
        if (net->layer[i].spec.name && !strcmp(net->layer[i].spec.name, name))
            return at_net_line_fail(
                line, fail, "names are unique, so they cannot be inside a repeat",
                "the name \"%s\" is already used on line %u", name, net->layer[i].spec.line);
    return AT_OK;
}

static at_err check_names(const at_net *net, const at_net_line *line, const at_layer_spec *spec,
                          at_fail *fail)
{
    if (spec->name) AT_TRY(check_name(net, line, spec->name, fail));
    if (spec->group && !at_net_group_known(net, spec->group))
        return at_net_line_fail(line, fail, "define it first: group NAME lr=..",
                                "unknown group \"%s\"", spec->group);
    return AT_OK;
}

at_err at_net_layer_add(at_net_parser *parser, const at_net_line *line, int32_t from, at_fail *fail)
{
    const net_word *word = find_word(line->word[0]);
    at_net_parsed   parsed;
    assert(word);
    AT_TRY(parse_line(parser, word, line, &parsed, fail));
    AT_TRY(check_names(parser->net, line, &parsed.spec, fail));
    parsed.spec.from = from;
    if (parsed.units_classes) parsed.spec.units = parser->net->shape.classes;
    if (word->build && from != AT_FROM_LAST)
        return at_net_line_fail(line, fail, NULL, "%s cannot be used as a shortcut", word->name);
    if (word->build) return word->build(parser, &parsed, fail);
    return at_net_add(parser->net, parsed.spec, fail);
}

at_err at_net_default_parse(at_net_parser *parser, const at_net_line *line, at_fail *fail)
{
    const char *names[AT_NET_WORDS_MAX];
    size_t      count = at_net_word_names(names);
    if (line->words != 2 || !line->options)
        return at_net_line_fail(line, fail, "for example: default conv bias=no start=he",
                                "default needs one layer and at least one option");
    const net_word *word = find_word(line->word[1]);
    if (!word) return at_net_line_unknown(line, "layer", line->word[1], names, count, fail);
    return parse_options(line, word->name, word->options & ~(unsigned)OPTION_NAME,
                         &parser->defaults[word - words], fail);
}
