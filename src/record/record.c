#include "record/record.h"

#include <assert.h>

void at_recorder_add(at_recorder *recorder, at_sink sink)
{
    assert(recorder->count < AT_SINKS_MAX);
    assert(sink.put);
    assert(sink.close);
    recorder->sink[recorder->count++] = sink;
}

/* An inconsistent record is a bug of the world that made it. */
static void check(const at_record *record)
{
    assert((record->kind == AT_REC_EVENT) == (record->event != NULL));
    assert((record->kind == AT_REC_ACTION) == (record->action != NULL));
    assert((record->kind == AT_REC_USAGE) == (record->usage != NULL));
    assert((record->kind == AT_REC_LINK) == (record->link != NULL));
    if (record->kind == AT_REC_TEXT) assert(record->text);
    if (record->kind == AT_REC_LINK) assert(record->node >= 1);
    assert(record->kind != AT_REC_TOTALS); /* files only */
    if (record->kind == AT_REC_USAGE) assert(record->node <= AT_NODE_EVALUATOR);
}

void at_recorder_put(const at_recorder *recorder, const at_record *record)
{
    check(record);
    for (uint32_t i = 0; i < recorder->count; i++)
        recorder->sink[i].put(recorder->sink[i].self, record);
}

at_err at_recorder_close(at_recorder *recorder, at_fail *fail)
{
    assert(recorder->count <= AT_SINKS_MAX);
    at_err first = AT_OK;
    while (recorder->count > 0) {
        at_sink sink = recorder->sink[--recorder->count];
        at_err  err = sink.close(sink.self, first ? NULL : fail);
        if (!first) first = err;
    }
    return first;
}
