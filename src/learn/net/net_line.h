/* net_line.h - the text of a net, cut into lines and words.
 *
 *     conv 5x5x32 stride=2 name=first      # a comment
 *     ──┬─ ──┬─── ───┬──── ────┬─────
 *     words: conv, 5x5x32      options: stride is 2, name is first
 *
 * Texts are hostile: every length and count has a bound, and only printable ASCII makes words (a
 * comment may hold anything).
 */
#ifndef AT_LEARN_NET_NET_LINE_H
#define AT_LEARN_NET_NET_LINE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
    AT_NET_TEXT_MAX = 1 << 16, /* bytes; a layer a line, AT_NET_LAYERS_MAX of them, fits */
    AT_NET_LINE_MAX = 200,     /* bytes without comment */
    AT_NET_WORDS_MAX = 4,
    AT_NET_OPTIONS_MAX = 12
};

typedef struct at_net_option {
    const char *name, *value;
} at_net_option;

/* A line that says something; it points into the text. */
typedef struct at_net_line {
    uint32_t      number; /* from 1 */
    uint32_t      words;  /* at least 1 */
    uint32_t      options;
    const char   *word[AT_NET_WORDS_MAX];
    at_net_option option[AT_NET_OPTIONS_MAX];
} at_net_line;

/* Cuts the text, in its place, into lines with words; they are freed by the caller. AT_ERR_USAGE
 * with the number of the line. */
at_err at_net_lines(char *text, at_net_line **lines, size_t *count, at_fail *fail);

/* Fails with "line 12: " and a sentence. Returns AT_ERR_USAGE. */
at_err at_net_line_fail(const at_net_line *line, at_fail *fail, const char *hint,
                        const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
