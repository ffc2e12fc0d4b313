/* `anytime replay`: feeds the event log of a run to a new hub and compares its actions. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "cli/loading_progress.h"
#include "cli/output.h"
#include "cli/verbs/verbs.h"
#include "record/replay/replay.h"

static void format_trace(char trace[17], const at_replay *replay)
{
    int size = snprintf(trace, 17, "%016" PRIx64, replay->trace);
    assert(size == 16);
}

static json_t *difference_json(const at_difference *d)
{
    if (!d->found) return json_null();
    return json_pack("{s:s, s:I, s:I, s:f, s:s, s:s, s:s}", "log", d->log, "event",
                     (json_int_t)d->event, "action", (json_int_t)d->action, "time",
                     at_seconds(d->at), "line", d->line, "recorded", d->recorded, "replayed",
                     d->replayed);
}

static json_t *replay_json(const char *run, const at_replay *replay)
{
    char trace[17];
    format_trace(trace, replay);
    return json_pack("{s:s, s:b, s:b, s:b, s:b, s:I, s:I, s:I, s:I, s:{s:I, s:I}, s:s, s:o}", "run",
                     run, "agrees", (int)!replay->difference.found, "complete",
                     (int)replay->complete, "thinned", (int)replay->thinned, "result_checked",
                     (int)replay->compared, "logs", (json_int_t)replay->logs, "events",
                     (json_int_t)replay->events, "actions", (json_int_t)replay->actions, "steps",
                     (json_int_t)replay->steps, "samples", "used", (json_int_t)replay->samples_used,
                     "dropped", (json_int_t)replay->samples_dropped, "trace_hash", trace,
                     "difference", difference_json(&replay->difference));
}

static void print_difference(const at_difference *d)
{
    assert(d->found);
    at_print("%s, event %" PRIu64 " at %.6f s: %s\n", d->log, d->event, at_seconds(d->at), d->line);
    at_print("  recorded: %s\n  replayed: %s\n", d->recorded, d->replayed);
}

static void print_agreement(const at_replay *replay)
{
    char trace[17];
    format_trace(trace, replay);
    printf("replayed %" PRIu64 " events, %" PRIu64 " actions, %" PRIu64
           " steps: every action agrees; trace_hash %s\n",
           replay->events, replay->actions, replay->steps, trace);
}

/* The run was long, was killed, or is still running. */
static void note_truncated(const char *run, const at_replay *replay)
{
    if (replay->thinned && !replay->difference.found)
        at_say("anytime: note: %s: the event log was thinned (--record-limit): records are "
               "missing after step %" PRIu64 ", and what follows cannot be replayed\n",
               run, replay->steps);
    if (replay->complete || replay->thinned || replay->difference.found) return;
    at_say("anytime: note: %s: the event log is incomplete; it agrees as far as it goes\n", run);
}

static at_err show(const char *run, const at_replay *replay, bool json, at_fail *fail)
{
    const at_difference *d = &replay->difference;
    note_truncated(run, replay);
    if (json)
        AT_TRY(at_print_json_take(replay_json(run, replay), fail));
    else if (d->found)
        print_difference(d);
    else
        print_agreement(replay);
    if (!d->found) return AT_OK;
    return at_fail_set(
        fail, AT_ERR_FAILED, "the log was changed, or this version of anytime decides differently",
        "%s: record and replay differ at event %" PRIu64 " of %s", run, d->event, d->log);
}

at_err at_verb_replay(at_parsed *parsed, const char *command, at_fail *fail)
{
    at_replay replay;
    (void)command;
    if (parsed->words != 1)
        return at_fail_set(fail, AT_ERR_USAGE, "for example: anytime replay runs/my-run",
                           "replay needs one run folder");
    at_loading_line line;
    at_loading_line_init(&line, parsed->word[0], parsed->settings.quiet);
    line.doing = "replaying";
    at_loading_line_follow_logs(&line, 0, 1);
    at_err err = at_replay_run(parsed->word[0], &replay, fail);
    at_loading_line_end(&line);
    if (err) return err;
    return show(parsed->word[0], &replay, parsed->settings.json, fail);
}
