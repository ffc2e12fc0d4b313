/* criteo.h - click logs in the form that Criteo published: a line is a row, fields end with tabs.
 *
 *     LABEL  13 whole numbers  26 categories      0 or 1; any field but the label may be empty
 *
 * A row becomes 39 features or fewer, in 2^bits dimensions:
 *     0 .. 12     a number x: sign(x) log(1 + |x|), which keeps counts of 1 and of 10,000 apart
 *                 without letting the latter drown everything else
 *     13 .. 25    1 where the number is missing
 *     from 26 on  1 at the hash of (column, text) for each category; a missing one is the empty
 *                 text. Where two of a row meet they add up.
 */
#ifndef AT_DATA_FORMATS_CRITEO_H
#define AT_DATA_FORMATS_CRITEO_H

#include "data/files/lines.h"

enum {
    AT_CRITEO_NUMBERS = 13,
    AT_CRITEO_CATEGORIES = 26,
    AT_CRITEO_BITS = 20, /* unless told otherwise */
    AT_CRITEO_BITS_MIN = 8,
    AT_CRITEO_BITS_MAX = 31,
};

/* A parser for rows of 2^*bits features; *bits MUST outlive it. */
at_lines_parser at_criteo_parser(const uint32_t *bits);

/* Whether a text begins with a line of 40 fields, the first of which is 0 or 1. */
bool at_criteo_begins(const char *text);

#endif
