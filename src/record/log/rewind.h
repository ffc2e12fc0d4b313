/* rewind.h - discards what a run wrote after the checkpoint from which it is resumed. */
#ifndef AT_RECORD_LOG_REWIND_H
#define AT_RECORD_LOG_REWIND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/time.h"

/* Removes the lines of later steps, and of times after `clock` (since START), from the CSV files of
 * the run, which may be of any size. Missing files are skipped. */
at_err at_rewind_tables(const char *folder, uint64_t step, at_ns clock, at_fail *fail);

/* Truncates the event logs of the run after the checkpoint of this step and time, so that the log
 * of the resumed part continues where they end. Logs without that checkpoint are left unchanged.
 * *gap: they leave out records (thinner.h), or lack those before the checkpoint, as after a full
 * disk. */
at_err at_rewind_logs(const char *folder, uint64_t step, at_ns clock, bool *gap, at_fail *fail);

#endif
