/* report.h - recorded runs that `anytime report` shows side by side; shared by its files. */
#ifndef AT_CLI_VERBS_REPORT_H
#define AT_CLI_VERBS_REPORT_H

#include "cli/verbs/compare.h"
#include "report/summary/table.h"

/* One of the runs. */
typedef struct at_reported {
    const char *folder;
    char       *label; /* the last part of the folder's name */
    json_t     *result;
    double      value[AT_MEASURE_COUNT];
} at_reported;

typedef struct at_report_set {
    const at_parsed *parsed;
    const char      *command;
    at_reported      runs[AT_WORDS_MAX];
    uint32_t         count;
    char             folder[AT_COMPARE_PATH_SIZE]; /* to write to */
} at_report_set;

enum { AT_REPORT_TITLE_SIZE = 200 };

/* "softmax on mnist", or how many runs there are when they are not of the same. */
void at_report_title(const at_report_set *set, char *title, size_t size);

/* The table of the runs; NULL when there is no memory. */
at_table *at_report_table(const at_report_set *set);

/* Writes report.html, report.md and the runs' traces to the folder (report_page.c). A run without
 * an event log has what its tables tell; AT_ERR_FORMAT when a log is damaged. */
at_err at_report_write_page(const at_report_set *set, at_fail *fail);

#endif
