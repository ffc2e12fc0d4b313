/* net_parse.h - what the two files of the .net parser share: net_parse.c cuts a text into lines and
 * executes them, net_words.c defines the layers, blocks and their options.
 *
 *     conv 5x5x32 stride=2 name=first      # a comment
 *     ──┬─ ──┬─── ───┬──── ────┬─────
 *     words: conv, 5x5x32      options: stride is 2, name is first
 */
#ifndef AT_LEARN_NET_NET_PARSE_H
#define AT_LEARN_NET_NET_PARSE_H

#include "learn/net/net.h"

enum {
    AT_NET_LINE_MAX = 200, /* bytes without comment */
    AT_NET_LINE_WORDS_MAX = 4,
    AT_NET_LINE_OPTIONS_MAX = 12,
    AT_NET_WINDOW_MAX = 1024, /* rows and columns of a convolution or pool */
    AT_NET_WORDS_MAX = 24     /* names of layers and blocks */
};

typedef struct at_net_option {
    const char *name, *value;
} at_net_option;

/* A line that is not empty; it points into the text. */
typedef struct at_net_line {
    uint32_t      number; /* from 1 */
    uint32_t      words;  /* at least 1 */
    uint32_t      options;
    const char   *word[AT_NET_LINE_WORDS_MAX];
    at_net_option option[AT_NET_LINE_OPTIONS_MAX];
} at_net_line;

/* A parsed layer or block line, as far as it does not depend on the layers before it. */
typedef struct at_net_parsed {
    at_layer_spec        spec;
    bool                 units_classes;    /* as many units as there are classes */
    const at_layer_kind *norm;             /* blocks: batch norm, or group norm of spec.groups */
    bool                 projection_given; /* blocks: the projection has its own initialization */
    at_initializer       projection;
} at_net_parsed;

/* The net, and the defaults of every word as set by the lines so far. */
typedef struct at_net_parser {
    at_net       *net;
    at_net_parsed defaults[AT_NET_WORDS_MAX];
} at_net_parser;

/* ---- net_words.c ----------------------------------------------------------------------------- */

/* Starts with an empty net and the built-in defaults. */
void at_net_parser_init(at_net_parser *parser, at_net *net);

/* Whether a layer or block has this name. */
bool at_net_word_exists(const char *name);

/* All names into `names` (room for AT_NET_WORDS_MAX); returns how many. */
size_t at_net_word_names(const char **names);

/* Adds the layer or block of a line; its first word MUST exist. It reads the output of `from`. */
at_err at_net_layer_add(at_net_parser *parser, const at_net_line *line, int32_t from,
                        at_fail *fail);

/* `default WORD name=value ..`: changes the defaults for later lines of that word. */
at_err at_net_default_parse(at_net_parser *parser, const at_net_line *line, at_fail *fail);

/* A whole number from `min` to `max`, of digits only. */
bool at_net_whole(const char *text, uint32_t min, uint32_t max, uint32_t *value);

/* A number from `min` to `max`. */
bool at_net_real(const char *text, double min, double max, double *value);

/* "3x32x32": `count` whole numbers, each at least 1. */
bool at_net_sizes(const char *text, uint32_t *sizes, uint32_t count);

/* ---- net_parse.c ----------------------------------------------------------------------------- */

/* Whether a layer may name this group. */
bool at_net_group_known(const at_net *net, const char *name);

/* Fails with "line 12: " and a sentence. Returns AT_ERR_USAGE. */
at_err at_net_line_fail(const at_net_line *line, at_fail *fail, const char *hint,
                        const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Fails because of an unknown name; the hint suggests the nearest of the known ones. */
at_err at_net_line_unknown(const at_net_line *line, const char *what, const char *name,
                           const char *const *names, size_t count, at_fail *fail);

#endif
