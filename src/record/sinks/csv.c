/* The three tables of the published systems, so that their plotting scripts can read the files of a
 * run, and tables of resource usage and of connections. docs/reference/files.md explains the
 * columns. */
#include <assert.h>
#include <stdlib.h>

#include "record/log/append_file.h"
#include "record/sinks/sinks.h"

typedef enum table { MASTER, WORKER, COLLECT, RESOURCE, LINK, TABLES } table;

static const struct {
    const char *name, *header;
} tables[TABLES] = {
    [MASTER] = {"master_stats.csv", "time,step,loss,learning_rate,test_loss,accuracy\n"},
    [WORKER] = {"worker_stats.csv",
                "time,master_step,rank,worker_step,worker_master_step,last_queued_update_count,"
                "num_samples,last_send,last_recv,last_exit,sleep_time,compute_time,"
                "master_wait_time\n"},
    [COLLECT] = {"collect_stats.csv", "step,worker_count,wait_time,total_samples\n"},
    [RESOURCE] = {"resource_stats.csv",
                  "time,node,pid,cpu_seconds,user_seconds,system_seconds,rss_bytes,shared_bytes,"
                  "peak_bytes,read_bytes,write_bytes,net_in_bytes,net_out_bytes,"
                  "loopback_bytes\n"},
    [LINK] = {"link_stats.csv",
              "time,worker,host,address,round_trip,round_trip_min,sent_bytes,received_bytes,"
              "resent_packets\n"},
};

typedef struct csv {
    at_append_file *table[TABLES]; /* the last two and WORKER may be NULL: not recorded */
    uint32_t        workers;
    at_ns           opened_at; /* start of the open step: the last APPLY, or the first order */
    bool            began;
    uint64_t       *version; /* from which the newest report of each worker started */
} csv;

static void put_whole(at_append_file *file, uint64_t value)
{
    at_append_file_whole(file, value);
    at_append_file_byte(file, ',');
}

static void put_seconds(at_append_file *file, at_ns value)
{
    at_append_file_seconds(file, value);
    at_append_file_byte(file, ',');
}

/* Updates that the worker received at once since its previous report; 0: that one is not known. */
static uint64_t count_updates(csv *self, at_node worker, uint64_t version)
{
    assert(worker >= 1);
    assert(worker <= self->workers);
    uint64_t before = self->version[worker - 1];
    self->version[worker - 1] = version;
    return before != AT_VERSION_NONE && version > before ? version - before : 0;
}

static void put_report(csv *self, const at_record *record)
{
    assert(record->event->kind == AT_EV_MESSAGE);
    at_append_file *file = self->table[WORKER];
    const at_work  *work = &record->event->as.report.work;
    if (!file) return;
    put_seconds(file, record->at);
    put_whole(file, record->version);
    put_whole(file, record->event->worker);
    put_whole(file, work->round);
    put_whole(file, work->version);
    put_whole(file, count_updates(self, record->event->worker, work->version));
    put_whole(file, work->samples);
    put_seconds(file, work->send_ns);
    put_seconds(file, work->install_ns);
    put_seconds(file, work->idle_ns - work->install_ns);
    put_seconds(file, work->sleep_ns);
    put_seconds(file, work->compute_ns + work->sleep_ns); /* as published: includes the sleep */
    at_append_file_seconds(file, self->began ? record->at - self->opened_at : 0);
    at_append_file_byte(file, '\n');
}

static void put_step(csv *self, const at_record *record)
{
    assert(record->action->kind == AT_ACT_APPLY);
    const at_action *action = record->action;
    uint64_t         step = action->as.apply.step, samples = action->as.apply.samples;
    at_append_file  *master = self->table[MASTER], *collect = self->table[COLLECT];
    put_seconds(master, record->at);
    put_whole(master, step);
    if (samples > 0) at_append_file_real(master, action->as.apply.loss_sum / (double)samples);
    at_append_file_byte(master, ',');
    at_append_file_real(master, record->lr);
    at_append_file_text(master, ",,\n");

    put_whole(collect, step);
    put_whole(collect, action->as.apply.count);
    put_seconds(collect, action->as.apply.wait_ns);
    at_append_file_whole(collect, samples);
    at_append_file_byte(collect, '\n');
    self->opened_at = record->at;
}

/* An evaluation ends some steps after its snapshot was taken; it gets a separate line with time and
 * step of the snapshot. */
static void put_evaluation(csv *self, const at_record *record)
{
    assert(record->event->kind == AT_EV_EVALUATED);
    const at_event *event = record->event;
    at_append_file *master = self->table[MASTER];
    put_seconds(master, record->at - (event->now - event->as.evaluated.at));
    put_whole(master, event->as.evaluated.step);
    at_append_file_text(master, ",,");
    at_append_file_real(master, event->as.evaluated.value[AT_METRIC_LOSS]);
    at_append_file_byte(master, ',');
    at_append_file_real(master, event->as.evaluated.value[AT_METRIC_ACCURACY]);
    at_append_file_byte(master, '\n');
}

static void note_order(csv *self, const at_record *record)
{
    if (self->began || record->action->as.order.leave) return;
    self->began = true;
    self->opened_at = record->at;
}

/* A comma and the number; no number when it is unknown. */
static void put_counter(at_append_file *file, uint64_t value)
{
    at_append_file_byte(file, ',');
    if (value != AT_USAGE_UNKNOWN) at_append_file_whole(file, value);
}

static void put_node(at_append_file *file, at_node node)
{
    assert(node <= AT_NODE_EVALUATOR);
    if (node == 0)
        at_append_file_text(file, "hub,");
    else if (node == AT_NODE_EVALUATOR)
        at_append_file_text(file, "evaluator,");
    else
        put_whole(file, node);
}

static void put_usage(csv *self, const at_record *record)
{
    assert(record->kind == AT_REC_USAGE);
    at_append_file *file = self->table[RESOURCE];
    const at_usage *usage = record->usage;
    if (!file) return;
    put_seconds(file, record->at);
    put_node(file, record->node);
    put_whole(file, (uint64_t)usage->pid);
    put_seconds(file, at_usage_cpu(usage));
    put_seconds(file, usage->user_ns);
    at_append_file_seconds(file, usage->system_ns);
    put_counter(file, usage->rss_bytes);
    put_counter(file, usage->shared_bytes);
    put_counter(file, usage->peak_bytes);
    put_counter(file, usage->read_bytes);
    put_counter(file, usage->write_bytes);
    put_counter(file, usage->net_in_bytes);
    put_counter(file, usage->net_out_bytes);
    put_counter(file, usage->loopback_bytes);
    at_append_file_byte(file, '\n');
}

static void put_text(at_append_file *file, const char *text)
{
    at_append_file_text(file, text);
    at_append_file_byte(file, ',');
}

static void put_link(csv *self, const at_record *record)
{
    at_append_file      *file = self->table[LINK];
    const at_link_stats *link = record->link;
    if (!file) return;
    put_seconds(file, record->at);
    put_whole(file, record->node);
    put_text(file, link->host);
    put_text(file, link->address);
    put_seconds(file, link->round_trip_ns);
    put_seconds(file, link->round_trip_ns_min);
    put_whole(file, link->sent_bytes);
    put_whole(file, link->received_bytes);
    at_append_file_whole(file, link->resent_packets);
    at_append_file_byte(file, '\n');
}

/* The records before were left out. */
static void skip(csv *self, const at_record *record)
{
    assert(record->kind == AT_REC_TOTALS);
    self->opened_at = record->at;
    for (uint32_t i = 0; i < self->workers; i++) self->version[i] = AT_VERSION_NONE;
}

static void put(void *opaque, const at_record *record)
{
    csv *self = opaque;
    if (record->kind == AT_REC_TOTALS) skip(self, record);
    if (record->kind == AT_REC_EVENT) {
        if (record->event->kind == AT_EV_MESSAGE) put_report(self, record);
        if (record->event->kind == AT_EV_EVALUATED) put_evaluation(self, record);
    } else if (record->kind == AT_REC_ACTION) {
        if (record->action->kind == AT_ACT_SEND) note_order(self, record);
        if (record->action->kind == AT_ACT_APPLY) put_step(self, record);
    } else if (record->kind == AT_REC_USAGE) {
        put_usage(self, record);
    } else if (record->kind == AT_REC_LINK) {
        put_link(self, record);
    }
    for (int i = 0; i < TABLES; i++)
        if (self->table[i])
            at_append_file_tick(self->table[i], record->at, at_record_is_save(record));
}

static at_err close_sink(void *opaque, at_fail *fail)
{
    csv   *self = opaque;
    at_err first = AT_OK;
    for (int i = 0; i < TABLES; i++) {
        at_err err = at_append_file_close(self->table[i], first ? NULL : fail);
        if (!first) first = err;
    }
    free(self->version);
    free(self);
    return first;
}

static at_err open_tables(csv *self, const at_run_info *info, bool rounds, at_fail *fail)
{
    const bool wanted[TABLES] = {[MASTER] = true,
                                 [WORKER] = rounds,
                                 [COLLECT] = true,
                                 [RESOURCE] = info->usage,
                                 [LINK] = info->links};
    assert(info->folder);
    for (int i = 0; i < TABLES; i++) {
        if (!wanted[i]) continue;
        AT_TRY(at_append_file_open(info->folder, tables[i].name, true, &self->table[i], fail));
        if (self->table[i]->fresh) at_append_file_text(self->table[i], tables[i].header);
    }
    return AT_OK;
}

at_err at_sink_csv(const at_run_info *info, bool rounds, at_sink *sink, at_fail *fail)
{
    assert(info->folder);
    assert(info->plan->workers_max >= 1);
    csv *self = calloc(1, sizeof *self);
    if (!self) return at_fail_memory_for(fail, "for CSV files");
    self->workers = info->plan->workers_max;
    self->version = calloc(self->workers, sizeof *self->version);
    at_err err = self->version ? open_tables(self, info, rounds, fail)
                               : at_fail_memory_for(fail, "for CSV files");
    if (err) {
        close_sink(self, NULL);
        return err;
    }
    *sink = (at_sink){.name = "csv", .self = self, .put = put, .close = close_sink};
    return AT_OK;
}
