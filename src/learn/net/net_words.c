#include "learn/net/net_words.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* ---- sizes ----------------------------------------------------------------------------------- */

/* 5x5x32: height, width, channels. */
static bool size_conv(at_net_said *said, const char *word)
{
    uint32_t size[3];
    if (!at_net_sizes(word, size, 3) || size[0] > AT_NET_WINDOW_MAX || size[1] > AT_NET_WINDOW_MAX)
        return false;
    said->spec.window.height = size[0];
    said->spec.window.width = size[1];
    said->spec.units = size[2];
    return true;
}

/* 2 or 3x3; the stride follows it unless there is one. */
static bool size_pool(at_net_said *said, const char *word)
{
    at_window *w = &said->spec.window;
    uint32_t   size[2];
    if (at_net_sizes(word, size, 1))
        size[1] = size[0];
    else if (!at_net_sizes(word, size, 2))
        return false;
    if (size[0] > AT_NET_WINDOW_MAX || size[1] > AT_NET_WINDOW_MAX) return false;
    w->height = size[0];
    w->width = size[1];
    if (!w->stride && size[0] == size[1]) w->stride = size[0];
    return w->stride > 0;
}

static bool size_avgpool(at_net_said *said, const char *word)
{
    if (strcmp(word, "all")) return size_pool(said, word);
    said->spec.window = (at_window){.stride = 1};
    return true;
}

static bool size_units(at_net_said *said, const char *word)
{
    return at_net_whole(word, 1, AT_NET_WIDTH_MAX, &said->spec.units);
}

static bool size_dense(at_net_said *said, const char *word)
{
    said->units_classes = !strcmp(word, "classes");
    return said->units_classes || size_units(said, word);
}

static bool size_groups(at_net_said *said, const char *word)
{
    return at_net_whole(word, 1, AT_NET_WIDTH_MAX, &said->spec.groups);
}

static bool size_reshape(at_net_said *said, const char *word)
{
    uint32_t size[3];
    if (!at_net_sizes(word, size, 3)) return false;
    said->spec.units = size[0];
    said->spec.height = size[1];
    said->spec.width = size[2];
    return true;
}

static bool size_resize(at_net_said *said, const char *word)
{
    uint32_t size[2];
    if (at_net_sizes(word, size, 1))
        size[1] = size[0];
    else if (!at_net_sizes(word, size, 2))
        return false;
    said->spec.height = size[0];
    said->spec.width = size[1];
    return true;
}

/* ---- words ----------------------------------------------------------------------------------- */

#define GLOROT                 \
    {                          \
        .kind = AT_INIT_GLOROT \
    }

enum {
    MAY_PARAMS = AT_MAY_NAME | AT_MAY_GROUP, /* of everything that has parameters */
    MAY_WINDOW = AT_MAY_STRIDE | AT_MAY_PAD,
    MAY_BLOCK = MAY_WINDOW | AT_MAY_NORM | AT_MAY_PROJECTION | AT_MAY_GROUP
};

/* Defaults are TensorFlow's, but for ResNet's blocks, which come from PyTorch, as does gn's eps. */
static const at_net_saying sayings[] = {
    {.name = "conv",
     .kind = &at_layer_conv,
     .options = MAY_WINDOW | AT_MAY_BIAS | AT_MAY_START | MAY_PARAMS,
     .usage = "conv 5x5x32: height, width, channels",
     .said.spec = {.window = {.stride = 1}, .same = true, .bias = true, .start = GLOROT},
     .size = size_conv},
    {.name = "dense",
     .kind = &at_layer_dense,
     .options = AT_MAY_BIAS | AT_MAY_START | MAY_PARAMS,
     .usage = "dense 1024, or dense classes",
     .said.spec = {.bias = true, .start = GLOROT},
     .size = size_dense},
    {.name = "relu", .kind = &at_layer_relu, .usage = "relu"},
    {.name = "maxpool",
     .kind = &at_layer_maxpool,
     .options = MAY_WINDOW,
     .usage = "maxpool 2, or maxpool 3x2 stride=2: only squares have a stride of their own",
     .size = size_pool},
    {.name = "avgpool",
     .kind = &at_layer_avgpool,
     .options = MAY_WINDOW,
     .usage = "avgpool 2, or avgpool all for the whole picture",
     .size = size_avgpool},
    {.name = "dropout",
     .kind = &at_layer_dropout,
     .options = AT_MAY_KEEP,
     .usage = "dropout keep=0.5",
     .said.spec = {.keep = 0.5}},
    {.name = "bn",
     .kind = &at_layer_bn,
     .options = AT_MAY_MOMENTUM | AT_MAY_EPSILON | MAY_PARAMS,
     .usage = "bn momentum=0.9",
     .said.spec = {.momentum = 0.9, .epsilon = 1e-3}},
    {.name = "gn",
     .kind = &at_layer_gn,
     .options = AT_MAY_EPSILON | MAY_PARAMS,
     .usage = "gn 32, for 32 groups of channels",
     .said.spec = {.epsilon = 1e-5},
     .size = size_groups},
    {.name = "flatten", .kind = &at_layer_flatten, .usage = "flatten"},
    {.name = "reshape",
     .kind = &at_layer_reshape,
     .usage = "reshape 1x10x10: channels, height, width",
     .size = size_reshape},
    {.name = "resize",
     .usage = "resize 224, or resize 224x224",
     .size = size_resize,
     .build = at_net_build_resize},
    {.name = "rgb", .usage = "rgb", .build = at_net_build_rgb},
    {.name = "basic",
     .options = MAY_BLOCK,
     .usage = "basic 64 stride=2",
     .said = {.spec.window = {.stride = 1, .top = 1, .left = 1, .bottom = 1, .right = 1},
              .norm = &at_layer_bn},
     .size = size_units,
     .build = at_net_block_basic},
    {.name = "bottleneck",
     .options = MAY_BLOCK,
     .usage = "bottleneck 64 stride=2",
     .said = {.spec.window = {.stride = 1, .top = 1, .left = 1, .bottom = 1, .right = 1},
              .norm = &at_layer_bn},
     .size = size_units,
     .build = at_net_block_bottleneck},
    {.name = "wide",
     .options = MAY_BLOCK,
     .usage = "wide 64 stride=2",
     .said = {.spec = {.window = {.stride = 1}, .same = true}, .norm = &at_layer_bn},
     .size = size_units,
     .build = at_net_block_wide},
};
enum { SAYINGS = sizeof sayings / sizeof *sayings };
_Static_assert((int)SAYINGS <= (int)AT_NET_SAYINGS_MAX, "a reader has defaults for every word");

void at_net_reader_init(at_net_reader *reader, at_net *net)
{
    assert(net->count == 0);
    *reader = (at_net_reader){.net = net};
    for (size_t i = 0; i < SAYINGS; i++) {
        reader->defaults[i] = sayings[i].said;
        reader->defaults[i].spec.kind = sayings[i].kind;
        reader->defaults[i].spec.from = AT_FROM_LAST;
    }
}

const at_net_saying *at_net_saying_find(const char *name)
{
    for (size_t i = 0; i < SAYINGS; i++)
        if (!strcmp(sayings[i].name, name)) return &sayings[i];
    return NULL;
}

size_t at_net_saying_names(const char **names)
{
    for (size_t i = 0; i < SAYINGS; i++) names[i] = sayings[i].name;
    return SAYINGS;
}

const at_net_said *at_net_said_default(const at_net_reader *reader, const at_layer_kind *kind)
{
    size_t i = 0;
    while (i < SAYINGS && sayings[i].kind != kind) i++;
    assert(i < SAYINGS);
    return &reader->defaults[i];
}

at_err at_net_said_read(const at_net_reader *reader, const at_net_saying *saying,
                        const at_net_line *line, at_net_said *said, at_fail *fail)
{
    uint32_t sizes = saying->size ? 1 : 0;
    *said = reader->defaults[saying - sayings];
    said->spec.line = line->number;
    AT_TRY(at_net_options_read(line, saying->name, saying->options, said, fail));
    if (line->words < 1 + sizes)
        return at_net_line_fail(line, fail, saying->usage, "%s needs a size", saying->name);
    if (line->words > 1 + sizes)
        return at_net_line_fail(line, fail, saying->usage, "\"%s\" is one word too many behind %s",
                                line->word[1 + sizes], saying->name);
    if (saying->size && !saying->size(said, line->word[1]))
        return at_net_line_fail(line, fail, saying->usage, "%s cannot have the size \"%s\"",
                                saying->name, line->word[1]);
    return AT_OK;
}

at_err at_net_default_read(at_net_reader *reader, const at_net_line *line, at_fail *fail)
{
    const char *names[AT_NET_SAYINGS_MAX];
    size_t      count = at_net_saying_names(names);
    if (line->words != 2 || !line->options)
        return at_net_line_fail(line, fail, "for example: default conv bias=no start=he",
                                "a default names one layer and some of its options");
    const at_net_saying *saying = at_net_saying_find(line->word[1]);
    if (!saying) return at_net_line_unknown(line, "layer", line->word[1], names, count, fail);
    return at_net_options_read(line, saying->name, saying->options & ~(unsigned)AT_MAY_NAME,
                               &reader->defaults[saying - sayings], fail);
}
