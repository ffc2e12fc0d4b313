/* script.h - shorthands that feed a scripted run to a recorder, for testing sinks. */
#ifndef AT_TESTS_UNIT_RECORD_SCRIPT_H
#define AT_TESTS_UNIT_RECORD_SCRIPT_H

#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "record/record.h"

static const at_strategy script_strategy = {.name = "amb"};

typedef struct script {
    at_plan     plan;
    at_run_info info;
    at_recorder recorder;
    at_ns       at;      /* of the next record */
    uint64_t    version; /* the hub's */
    char        folder[32];
} script;

/* A run of `workers` workers that writes to a new folder. */
static inline void script_begin(script *run, uint32_t workers)
{
    *run = (script){.plan = {.strategy = &script_strategy,
                             .mix = at_mix_rules,
                             .workers = workers,
                             .workers_max = workers}};
    snprintf(run->folder, sizeof run->folder, "/tmp/anytime-record-XXXXXX");
    assert_non_null(mkdtemp(run->folder));
    run->info = (at_run_info){
        .folder = run->folder,
        .plan = &run->plan,
        .world = "local",
        .command = "anytime train --model softmax",
        .model = "softmax",
        .data = "fashion-mnist",
        .parameters = 7850,
        .samples_epoch = 60000,
        .seed = 1,
        .date = 1.8e9,
    };
}

/* Removes the folder and its files. */
static inline void script_end(script *run)
{
    DIR *folder = opendir(run->folder);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        char path[400];
        snprintf(path, sizeof path, "%s/%s", run->folder, entry->d_name);
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..")) unlink(path);
    }
    closedir(folder);
    assert_int_equal(rmdir(run->folder), 0);
}

static inline void script_close(script *run)
{
    at_fail fail = {0};
    if (at_recorder_close(&run->recorder, &fail)) fail_msg("%s", fail.text);
}

static inline void script_put(script *run, at_record record)
{
    record.at = run->at;
    record.version = run->version;
    at_recorder_put(&run->recorder, &record);
}

/* Other facts (pid, text, ..) are set in the record. The world's clock is 7 s ahead. */
static inline void script_event(script *run, at_event event, at_record record)
{
    event.now = run->at + AT_SEC(7);
    record.kind = AT_REC_EVENT;
    record.event = &event;
    script_put(run, record);
}

static inline void script_action(script *run, at_action action, at_record record)
{
    record.kind = AT_REC_ACTION;
    record.action = &action;
    script_put(run, record);
}

static inline void script_say(script *run, const char *text)
{
    script_put(run, (at_record){.kind = AT_REC_TEXT, .text = text});
}

static inline void script_start(script *run)
{
    script_event(run, (at_event){.kind = AT_EV_START}, (at_record){0});
}

static inline void script_join(script *run, at_node worker, int64_t pid, uint32_t incarnation)
{
    at_event event = {.kind = AT_EV_JOINED, .worker = worker};
    event.as.joined.incarnation = incarnation;
    script_event(run, event, (at_record){.pid = pid});
}

static inline void script_lost(script *run, at_node worker, const char *how, bool returns)
{
    at_event event = {.kind = AT_EV_LOST, .worker = worker};
    event.as.lost.returns = returns;
    script_event(run, event, (at_record){.text = how});
}

static inline void script_order(script *run, at_node worker, at_ns time_limit)
{
    at_action action = {.kind = AT_ACT_SEND, .worker = worker};
    action.as.order = (at_order){.samples_max = 64, .time_limit = time_limit};
    script_action(run, action, (at_record){0});
}

static inline void script_leave(script *run, at_node worker)
{
    at_action action = {.kind = AT_ACT_SEND, .worker = worker};
    action.as.order.leave = true;
    script_action(run, action, (at_record){0});
}

static inline void script_report(script *run, at_node worker, uint32_t incarnation,
                                 uint64_t sequence, at_work work)
{
    at_event event = {.kind = AT_EV_MESSAGE, .worker = worker};
    event.as.report = (at_report){.work = work, .incarnation = incarnation, .sequence = sequence};
    script_event(run, event, (at_record){0});
}

/* Closes a step with these pieces and increments the version. */
static inline void script_apply(script *run, const at_piece *pieces, uint32_t count,
                                double loss_sum, double lr)
{
    at_action action = {.kind = AT_ACT_APPLY};
    action.as.apply.step = run->version + 1;
    action.as.apply.pieces = pieces;
    action.as.apply.count = count;
    action.as.apply.loss_sum = loss_sum;
    action.as.apply.wait_ns = AT_MS(50);
    for (uint32_t i = 0; i < count; i++) action.as.apply.samples += pieces[i].samples;
    script_action(run, action, (at_record){.lr = lr});
    run->version++;
}

static inline void script_drop(script *run, at_node worker, uint64_t samples, at_drop why)
{
    at_action action = {.kind = AT_ACT_DROP, .worker = worker};
    action.as.drop.samples = samples;
    action.as.drop.why = why;
    script_action(run, action, (at_record){0});
}

/* An evaluation of `step`, whose snapshot was taken `ago` before. */
static inline void script_evaluated(script *run, uint64_t step, at_ns ago, double accuracy,
                                    double loss)
{
    at_event event = {.kind = AT_EV_EVALUATED};
    event.as.evaluated.step = step;
    event.as.evaluated.at = run->at + AT_SEC(7) - ago;
    for (int i = 0; i < AT_METRIC_COUNT; i++) event.as.evaluated.value[i] = NAN;
    event.as.evaluated.value[AT_METRIC_ACCURACY] = accuracy;
    event.as.evaluated.value[AT_METRIC_LOSS] = loss;
    script_event(run, event, (at_record){.count = 10000});
}

static inline void script_finish(script *run, at_end why)
{
    at_action action = {.kind = AT_ACT_FINISH};
    action.as.finish.why = why;
    script_action(run, action, (at_record){0});
}

/* The contents of a file in the run folder; freed by the caller. */
static inline char *script_read(const script *run, const char *name)
{
    char           path[400];
    unsigned char *bytes;
    size_t         size;
    snprintf(path, sizeof path, "%s/%s", run->folder, name);
    at_fail fail = {0};
    if (at_file_read(path, 1 << 26, &bytes, &size, &fail)) fail_msg("%s", fail.text);
    return (char *)bytes;
}

static inline void script_check_file(const script *run, const char *name, const char *expected)
{
    char *text = script_read(run, name);
    assert_string_equal(text, expected);
    free(text);
}

#endif
