/* The lines that the published programs print, for scripts that read their output:
 *
 *     wk4|Sending [256] examples, compute_time [5.64], last_idle [0.241], last_send [0.222]
 *     wk0|step = 109, loss = 2.39, learning_rate = 0.001, accuracy = 0.13 (6.153 sec)
 *
 * compute_time includes induced sleep; idle and send are those of the round before, and the seconds
 * those since the line of the step before. The accuracy is that of the newest evaluation. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "record/sinks/sinks.h"

typedef struct classic {
    FILE  *file;
    at_ns  last; /* time of the step before */
    double accuracy;
} classic;

static void put_report(const classic *self, const at_record *record)
{
    const at_work *work = &record->event->as.report.work;
    assert(record->event->kind == AT_EV_MESSAGE);
    fprintf(self->file,
            "wk%u|Sending [%u] examples, compute_time [%.6g], last_idle [%.6g], last_send [%.6g]\n",
            record->event->worker, work->samples, at_seconds(work->compute_ns + work->sleep_ns),
            at_seconds(work->idle_ns), at_seconds(work->send_ns));
}

static void put_step(classic *self, const at_record *record)
{
    const at_action *action = record->action;
    double           samples = (double)action->as.apply.samples;
    fprintf(self->file,
            "wk0|step = %llu, loss = %.8g, learning_rate = %.6g, accuracy = %.6g (%.3f sec)\n",
            (unsigned long long)action->as.apply.step,
            samples > 0 ? action->as.apply.loss_sum / samples : (double)NAN, record->lr,
            self->accuracy, at_seconds(record->at - self->last));
    self->last = record->at;
}

static void put(void *opaque, const at_record *record)
{
    classic *self = opaque;
    if (record->kind == AT_REC_EVENT && record->event->kind == AT_EV_MESSAGE)
        put_report(self, record);
    if (record->kind == AT_REC_EVENT && record->event->kind == AT_EV_EVALUATED)
        self->accuracy = record->event->as.evaluated.value[AT_METRIC_ACCURACY];
    if (record->kind == AT_REC_ACTION && record->action->kind == AT_ACT_APPLY)
        put_step(self, record);
}

static at_err close_sink(void *opaque, at_fail *fail)
{
    classic *self = opaque;
    (void)fail;
    fflush(self->file); /* errors are ignored, as on the console */
    free(self);
    return AT_OK;
}

at_err at_sink_classic(FILE *file, at_sink *sink, at_fail *fail)
{
    classic *self = calloc(1, sizeof *self);
    assert(file);
    if (!self) return at_fail_memory(fail);
    *self = (classic){.file = file, .accuracy = (double)NAN};
    *sink = (at_sink){.name = "classic", .self = self, .put = put, .close = close_sink};
    return AT_OK;
}
