/* count_logs.h - the samples of a run, as whoever reads its event logs counts them. */
#ifndef AT_TESTS_UNIT_WORLD_COUNT_LOGS_H
#define AT_TESTS_UNIT_WORLD_COUNT_LOGS_H

#include <jansson.h>

#include "record/log/eventlog.h"

typedef struct log_totals {
    uint64_t used, dropped;
} log_totals;

/* Totals take the place of all that was counted before. */
static inline void count_record(log_totals *t, const at_record *record)
{
    const at_action *action = record->action;
    if (record->kind == AT_REC_TOTALS) {
        json_t *totals = json_loads(record->text, 0, NULL);
        assert_non_null(totals);
        t->used = (uint64_t)json_integer_value(json_object_get(totals, "samples_used"));
        t->dropped = (uint64_t)json_integer_value(json_object_get(totals, "samples_dropped"));
        json_decref(totals);
    }
    if (record->kind != AT_REC_ACTION) return;
    if (action->kind == AT_ACT_APPLY) t->used += action->as.apply.samples;
    if (action->kind == AT_ACT_DROP) t->dropped += action->as.drop.samples;
}

static inline at_err count_log(void *self, at_eventlog *log, at_fail *fail)
{
    const at_record *record;
    at_err           err;
    while (!(err = at_eventlog_next(log, &record, fail)) && record) count_record(self, record);
    return err;
}

static inline at_err count_logs(const char *folder, log_totals *totals, at_fail *fail)
{
    *totals = (log_totals){0};
    return at_eventlog_visit(folder, count_log, totals, fail);
}

#endif
