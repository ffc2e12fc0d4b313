/* rewind.h - what a run wrote after its checkpoint is taken back before it goes on from there. */
#ifndef AT_RECORD_LOG_REWIND_H
#define AT_RECORD_LOG_REWIND_H

#include <stdint.h>

#include "base/err.h"

/* Removes the lines of steps after `step` from the CSV files of the run. Files that are not there
 * are no failure. */
at_err at_rewind_tables(const char *folder, uint64_t step, at_fail *fail);

/* Cuts the event logs of the run behind the checkpoint of this step, so that the log of the part
 * that follows goes on where they end. Logs that do not tell of it stay as they are. */
at_err at_rewind_logs(const char *folder, uint64_t step, at_fail *fail);

#endif
