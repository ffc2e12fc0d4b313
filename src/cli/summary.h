/* summary.h - prints the result of a run: a few lines and a table of its workers.
 *
 *     amb: 500 steps in 31.20 s, 4201 samples/s, 93 % of the workers' time useful
 *     samples: 131072 drawn = 131072 used + 0 dropped
 *     test: loss 0.4400, accuracy 0.8460 on 10000 samples
 *
 *     worker  rounds   used  dropped  compute  sleep  idle
 *     ────────────────────────────────────────────────────
 *     1          500  32768        0     93 %    4 %   3 %
 *     ..
 */
#ifndef AT_CLI_SUMMARY_H
#define AT_CLI_SUMMARY_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"

/* Prints a result document of at_run. `brief`: without the table. */
at_err at_summary_print(const json_t *result, const char *folder, bool brief, at_fail *fail);

/* Prints main figures of the run in the folder `from`, and those of `result` below them. */
at_err at_summary_beside(const char *from, const json_t *result, at_fail *fail);

/* Warns on stderr when the model ended worse than any guess. */
void at_warn_of_explosion(const json_t *result);

#endif
