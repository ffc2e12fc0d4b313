/* run_page.h - the web page of recorded runs; for `report`, `compare` and `sweep`. */
#ifndef AT_CLI_RUN_PAGE_H
#define AT_CLI_RUN_PAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct at_page_run {
    const char *folder, *label;
    json_t     *result; /* its result.json; borrowed */
} at_page_run;

#define AT_PAGE_NAME "report.html"

/* Writes FOLDER/report.html, which needs no other file. What it holds of each run is limited, so
 * that a page of many runs stays small. Notes about runs of which little is known, and the progress
 * with long logs unless `quiet`, go to stderr. */
at_err at_run_page_write(const char *folder, const char *title, const at_page_run *runs,
                         uint32_t count, bool quiet, at_fail *fail);

#endif
