/* step_rows.h - rows of a step log as they were read, before they are a table. Internal to the pace
 * layer: step_log_csv.c fills them, step_log.c turns them into an at_step_log. */
#ifndef AT_PACE_STEP_ROWS_H
#define AT_PACE_STEP_ROWS_H

#include "pace/step_log.h"

typedef struct at_step_row {
    double   key, seconds, when;
    double   samples;
    uint32_t worker; /* index in names */
    uint32_t line;   /* in the file, for messages */
} at_step_row;

typedef struct at_step_rows {
    at_step_row *row;
    size_t       count, capacity;
    char (*names)[AT_STEP_LOG_NAME_SIZE];
    uint32_t workers, names_capacity;
    bool     has_samples, has_when, normalised, by_time;
} at_step_rows;

/* Builds the table; reorders the rows. AT_ERR_FORMAT when no table can be made of them. */
at_err at_step_rows_build(at_step_rows *rows, at_step_log *log, at_fail *fail);

#endif
