/* link.h - what both measurements of `anytime link` use. */
#ifndef AT_CLI_VERBS_LINK_H
#define AT_CLI_VERBS_LINK_H

#include "cli/options/options.h"
#include "report/summary/table.h"

enum { AT_LINK_SIZES_MAX = 16 };

/* --sizes, as numbers of floats. */
at_err at_link_sizes(const char *text, size_t floats[AT_LINK_SIZES_MAX], uint32_t *count,
                     at_fail *fail);

/* Cells with a unit that fits. */
void at_link_add_bytes(at_table *table, double bytes);
void at_link_add_time(at_table *table, double seconds);

/* `anytime link ADDRESS:PORT`: the path to a hub. (link_path.c) */
at_err at_link_path(const at_parsed *parsed, at_fail *fail);

#endif
