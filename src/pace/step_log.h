/* step_log.h - times of every worker in every step, as measured in a training job.
 *
 * The CSV form has a header and one row per worker and step. Columns are found by name, others are
 * ignored:
 *
 *     step | time                                      which step (rows with equal values)
 *     worker | rank                                    a number or a name
 *     seconds | batch_time | batch_time_norm | compute_time     how long the worker computed
 *     samples | num_samples | num_batches              how many samples; optional
 *
 * With both step and time, step numbers the steps and time is when the row was written. Fields are
 * separated by commas, semicolons or tabs; lines starting with # are comments. Rows may come in any
 * order. A file of any size is read in bounded memory: one with more than AT_STEP_LOG_ROWS_MAX rows
 * is refused.
 *
 *     at_step_log_reader *reader;
 *     err = at_step_log_reader_new(&options, &reader, &fail);
 *     while (more) err = at_step_log_feed(reader, bytes, size, &fail);
 *     err = at_step_log_end(reader, &log, &fail);
 *     at_step_log_reader_free(reader);
 */
#ifndef AT_PACE_STEP_LOG_H
#define AT_PACE_STEP_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
    AT_STEP_LOG_ROWS_MAX = 4000000,
    AT_STEP_LOG_WORKERS_MAX = 65536,
    AT_STEP_LOG_NAME_SIZE = 40,
    AT_STEP_LOG_NOTES_SIZE = 1000
};

/* A complete table: every step has a row of every worker. */
typedef struct at_step_log {
    uint32_t workers, steps;
    char (*names)[AT_STEP_LOG_NAME_SIZE];
    double *key;        /* (steps) value of the column step or time */
    double *seconds;    /* (steps, workers) > 0 */
    double *pause;      /* (steps, workers) part of seconds without computing; NULL: not known */
    double *samples;    /* (steps, workers) > 0; NULL: not recorded */
    double *when;       /* (steps, workers) when the row was written, in seconds; NULL: not known */
    bool    normalised; /* times have no absolute scale */
    bool    by_time;    /* steps are numbered by a column `time` */
    char    notes[AT_STEP_LOG_NOTES_SIZE]; /* sentences about what was left out; "": nothing */
} at_step_log;

void at_step_log_deinit(at_step_log *log); /* accepts a zeroed one */

/* Allocates the arrays of a log, zeroed; `with` names the optional ones by their first letters: "p"
 * pause, "s" samples, "w" when. AT_ERR_FAILED when out of memory. */
at_err at_step_log_init(at_step_log *log, uint32_t workers, uint32_t steps, const char *with,
                        at_fail *fail);

typedef struct at_step_log_options {
    double unit;       /* seconds per unit of the times; 0 means 1 */
    bool   normalised; /* times have no absolute scale, as always in a column batch_time_norm */
} at_step_log_options;

typedef struct at_step_log_reader at_step_log_reader;

/* A reader without rows. AT_ERR_FAILED when out of memory. */
at_err at_step_log_reader_new(const at_step_log_options *options, at_step_log_reader **reader,
                              at_fail *fail);
void   at_step_log_reader_free(at_step_log_reader *reader); /* accepts NULL */

/* Begins a file, with a header of its own; its rows are added to those of the files before. Not
 * needed for a single file. */
at_err at_step_log_next_file(at_step_log_reader *reader, at_fail *fail);

/* Adds the next bytes of the file. AT_ERR_FORMAT, with the line number, for a header without the
 * needed columns and for values that no job can have measured. */
at_err at_step_log_feed(at_step_log_reader *reader, const void *bytes, size_t size, at_fail *fail);

/* Ends the file and builds the table. Steps that lack workers are left out and a second row of a
 * worker in a step is ignored, both with a note; AT_ERR_FORMAT when too little is left. */
at_err at_step_log_end(at_step_log_reader *reader, at_step_log *log, at_fail *fail);

#endif
