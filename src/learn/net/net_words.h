/* net_words.h - what the lines of a net say, for the files that read its text: net_text.c (the
 * whole), net_about.c, net_groups.c, net_words.c (layers), net_options.c, net_blocks.c.
 *
 * Every word for a layer or block is a row of one table. The row says what a line of that word
 * means before it has been read (its defaults, which a `default` line changes), which options may
 * follow, and how its size is written.
 */
#ifndef AT_LEARN_NET_NET_WORDS_H
#define AT_LEARN_NET_NET_WORDS_H

#include <stdbool.h>

#include "learn/net/net.h"
#include "learn/net/net_line.h"

/* A line as far as it is understood without the layers before it. */
typedef struct at_net_said {
    at_layer_spec        spec;
    bool                 units_classes;    /* as many as there are classes */
    const at_layer_kind *norm;             /* blocks: batch norm, or group norm of spec.groups */
    bool                 projection_given; /* blocks: the projection starts in its own way */
    at_init              projection;
} at_net_said;

enum { AT_NET_WINDOW_MAX = 1024, AT_NET_SAYINGS_MAX = 24 };

/* The net, and the defaults of every word as the lines so far have set them. */
typedef struct at_net_reader {
    at_net     *net;
    at_net_said defaults[AT_NET_SAYINGS_MAX];
} at_net_reader;

/* Which options may follow a word. */
enum {
    AT_MAY_STRIDE = 1,
    AT_MAY_PAD = 2,
    AT_MAY_BIAS = 4,
    AT_MAY_START = 8,
    AT_MAY_KEEP = 16,
    AT_MAY_MOMENTUM = 32,
    AT_MAY_EPSILON = 64,
    AT_MAY_NORM = 128,
    AT_MAY_PROJECTION = 256,
    AT_MAY_NAME = 512,
    AT_MAY_GROUP = 1024
};

typedef struct at_net_saying {
    const char          *name;
    const at_layer_kind *kind; /* NULL: `build` knows */
    unsigned             options;
    const char          *usage; /* an example, for hints */
    at_net_said          said;
    /* Reads the word behind the name; NULL: nothing follows. False when it makes no sense. */
    bool (*size)(at_net_said *said, const char *word);
    /* Adds its layers; NULL: it is one layer, and is added as it is. */
    at_err (*build)(at_net_reader *reader, const at_net_said *said, at_fail *fail);
} at_net_saying;

/* The reader of an empty net. */
void at_net_reader_init(at_net_reader *reader, at_net *net);

/* The row of that name, or NULL. */
const at_net_saying *at_net_saying_find(const char *name);

/* The names of all rows into `names` (room for AT_NET_SAYINGS_MAX); returns how many. */
size_t at_net_saying_names(const char **names);

/* What a line of that word says. */
at_err at_net_said_read(const at_net_reader *reader, const at_net_saying *saying,
                        const at_net_line *line, at_net_said *said, at_fail *fail);

/* A line "default WORD name=value ..": changes what later lines of that word mean. */
at_err at_net_default_read(at_net_reader *reader, const at_net_line *line, at_fail *fail);

/* The defaults of a kind of layer, for blocks that are made of it. */
const at_net_said *at_net_said_default(const at_net_reader *reader, const at_layer_kind *kind);

/* The options of a line, of which `allowed` may be there, into *said. `word` is for messages. */
at_err at_net_options_read(const at_net_line *line, const char *word, unsigned allowed,
                           at_net_said *said, at_fail *fail);

/* Refuses a name on a line: the nearest of the known ones is the hint. */
at_err at_net_line_unknown(const at_net_line *line, const char *what, const char *name,
                           const char *const *names, size_t count, at_fail *fail);

/* A whole number from `min` to `max`, of digits only. */
bool at_net_whole(const char *text, uint32_t min, uint32_t max, uint32_t *value);

/* A number from `min` to `max`. */
bool at_net_real(const char *text, double min, double max, double *value);

/* "3x32x32": `count` whole numbers, each at least 1. */
bool at_net_sizes(const char *text, uint32_t *sizes, uint32_t count);

/* "input 3x32x32" or "input 100"; the latter is 100 channels of height and width 1. */
at_err at_net_input_read(const at_net_line *line, at_net_about *about, at_fail *fail);
/* "classes 10". */
at_err at_net_classes_read(const at_net_line *line, at_net_about *about, at_fail *fail);

/* "group biases lr=2 decay=0": a group's settings into the net. */
at_err at_net_group_read(at_net *net, const at_net_line *line, at_fail *fail);
/* Whether a layer may name this group. */
bool at_net_group_known(const at_net *net, const char *name);
/* To be called after the last layer: refuses a group that no layer is in. */
at_err at_net_groups_check(const at_net *net, at_fail *fail);

/* Puts the name of a text in front of a failure: "my.net line 12: ..". Returns fail->err. */
at_err at_net_text_fail(const char *name, at_fail *fail);

/* The blocks, see net_blocks.c. */
at_err at_net_block_basic(at_net_reader *reader, const at_net_said *said, at_fail *fail);
/* The same with 1x1 convolutions around a 3x3; it ends with four times the channels. */
at_err at_net_block_bottleneck(at_net_reader *reader, const at_net_said *said, at_fail *fail);
/* Pre-activation: norm and ReLU come before the convolutions. */
at_err at_net_block_wide(at_net_reader *reader, const at_net_said *said, at_fail *fail);
/* Pictures to three channels; those that have three stay. */
at_err at_net_build_rgb(at_net_reader *reader, const at_net_said *said, at_fail *fail);
/* Pictures to another size; those that have it stay. */
at_err at_net_build_resize(at_net_reader *reader, const at_net_said *said, at_fail *fail);

#endif
