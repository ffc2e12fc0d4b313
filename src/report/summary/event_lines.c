#include "report/summary/event_lines.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/summary/json_value.h"

enum { TEXT_SIZE = 240 };

/* The names appear in the summary's JSON. */
#define KIND_MAP(X)     \
    X(JOIN, "join")     \
    X(LOST, "lost")     \
    X(DROP, "drop")     \
    X(NOTICE, "notice") \
    X(SAY, "say")       \
    X(END, "end")
typedef enum kind {
#define X(id, text) id,
    KIND_MAP(X)
#undef X
} kind;

static const char *const kind_name[] = {
#define X(id, text) [id] = text,
    KIND_MAP(X)
#undef X
};

typedef struct line {
    uint64_t serial;
    at_ns    at;
    kind     kind;
    at_node  first, last; /* workers concerned */
    bool     named;       /* the text has its host */
    uint64_t rounds, samples;
    at_drop  why;
    char     text[TEXT_SIZE];
} line;

struct at_event_lines {
    uint32_t size;
    uint64_t count; /* of all lines ever added; line i is at i % size */
    line     lines[];
};

at_event_lines *at_event_lines_new(uint32_t lines)
{
    assert(lines >= 1);
    at_event_lines *e = calloc(1, sizeof *e + lines * sizeof *e->lines);
    if (e) e->size = lines;
    return e;
}

void at_event_lines_free(at_event_lines *lines)
{
    free(lines);
}

static line *newest(at_event_lines *e)
{
    return e->count > 0 ? &e->lines[(e->count - 1) % e->size] : NULL;
}

static line *new_line(at_event_lines *e, kind what, at_ns at)
{
    assert(e->size >= 1);
    line *l = &e->lines[e->count++ % e->size];
    *l = (line){.kind = what, .at = at};
    return l;
}

/* ---- sentences ----------------------------------------------------------------------------- */

static void put_join(at_event_lines *e, uint64_t serial, at_ns at, const at_event *event)
{
    line *l = newest(e);
    bool  again = event->as.joined.incarnation > 1;
    assert(event->worker >= 1);
    if (again || !l || l->kind != JOIN || l->last + 1 != event->worker) {
        l = new_line(e, JOIN, at);
        l->first = event->worker;
    }
    l->serial = serial;
    l->last = again ? 0 : event->worker; /* 0: no later join extends this line */
    at_text text = at_text_in(l->text, sizeof l->text);
    if (again)
        at_text_add(&text, "worker %u rejoined (incarnation %u)", event->worker,
                    event->as.joined.incarnation);
    else if (l->first == l->last)
        at_text_add(&text, "worker %u joined", l->first);
    else
        at_text_add(&text, "workers %u %s %u joined", l->first,
                    l->last == l->first + 1 ? "and" : "to", l->last);
}

/* The first record of a connection follows the join, and says from where. */
static void put_host(at_event_lines *e, uint64_t serial, const at_record *record)
{
    line       *l = newest(e);
    const char *host = record->link->host[0] ? record->link->host : record->link->address;
    if (!l || l->kind != JOIN || l->first != record->node || l->named) return;
    if (l->last > l->first) return; /* a line about several workers */
    at_text text = {.bytes = l->text, .used = strlen(l->text), .size = sizeof l->text};
    at_text_add(&text, " from %s", host);
    l->serial = serial;
    l->named = true;
    l->last = 0; /* no later join extends this line */
}

static void put_lost(at_event_lines *e, uint64_t serial, at_ns at, const at_record *record)
{
    line   *l = new_line(e, LOST, at);
    at_text text = at_text_in(l->text, sizeof l->text);
    l->serial = serial;
    l->first = l->last = record->event->worker;
    at_text_add(&text, "worker %u was lost", record->event->worker);
    if (record->text && *record->text) at_text_add(&text, ": %s", record->text);
    if (record->event->as.lost.returns) at_text_add(&text, "; starting a replacement");
}

static const char *drop_reason(at_drop why)
{
    switch (why) {
    case AT_DROP_STALE: return "stale";
    case AT_DROP_ABANDONED: return "abandoned for a newer version";
    case AT_DROP_LOST: return "lost with their worker";
    case AT_DROP_STOPPED: return "unfinished at the end of the run";
    case AT_DROP_NONFINITE: return "not finite";
    case AT_DROP_COUNT: break;
    }
    assert(!"unreachable");
    return "";
}

static void put_drop(at_event_lines *e, uint64_t serial, at_ns at, const at_action *action)
{
    assert(action->as.drop.why < AT_DROP_COUNT);
    line *l = newest(e);
    if (!l || l->kind != DROP || l->why != action->as.drop.why) {
        l = new_line(e, DROP, at);
        l->why = action->as.drop.why;
    }
    l->serial = serial;
    l->rounds++;
    l->samples += action->as.drop.samples;
    at_text text = at_text_in(l->text, sizeof l->text);
    at_text_add(&text, "dropped %llu samples of %llu %s: %s", (unsigned long long)l->samples,
                (unsigned long long)l->rounds, l->rounds == 1 ? "round" : "rounds",
                drop_reason(l->why));
}

static void put_sentence(at_event_lines *e, uint64_t serial, at_ns at, kind what,
                         const char *sentence)
{
    assert(sentence);
    line   *l = new_line(e, what, at);
    at_text text = at_text_in(l->text, sizeof l->text);
    l->serial = serial;
    at_text_add(&text, "%s", sentence);
}

static void put_notice(at_event_lines *e, uint64_t serial, at_ns at, const at_action *action)
{
    char waited[40], sentence[TEXT_SIZE];
    at_text_show_duration(waited, sizeof waited, action->as.notice.waited);
    at_text text = at_text_in(sentence, sizeof sentence);
    at_text_add(&text, "step %llu has been open for %s", (unsigned long long)action->as.notice.step,
                waited);
    if (action->worker > 0) at_text_add(&text, ", waiting for worker %u", action->worker);
    put_sentence(e, serial, at, NOTICE, sentence);
}

static const char *end_reason(at_end why)
{
    switch (why) {
    case AT_END_STEPS: return "step limit reached";
    case AT_END_SAMPLES: return "sample limit reached";
    case AT_END_EPOCHS: return "epoch limit reached";
    case AT_END_SECONDS: return "time limit reached";
    case AT_END_TARGET: return "target reached";
    case AT_END_SIGNAL: return "interrupted by a signal";
    case AT_END_WORKERS: return "no workers left";
    case AT_END_LEFT: return "all workers have left";
    case AT_END_FEW:
    case AT_END_RUNNING:
    case AT_END_DIVERGED:
    case AT_END_LOST:
    case AT_END_COUNT: break;
    }
    return at_end_name[why];
}

static void put_end(at_event_lines *e, uint64_t serial, at_ns at, at_end why)
{
    char    sentence[TEXT_SIZE];
    at_text text = at_text_in(sentence, sizeof sentence);
    assert(why < AT_END_COUNT);
    at_text_add(&text, "the run ended: %s", end_reason(why));
    put_sentence(e, serial, at, END, sentence);
}

static void put_evict(at_event_lines *e, uint64_t serial, at_ns at, at_node worker)
{
    char    sentence[TEXT_SIZE];
    at_text text = at_text_in(sentence, sizeof sentence);
    at_text_add(&text, "worker %u was evicted", worker);
    put_sentence(e, serial, at, LOST, sentence);
}

static void put_action(at_event_lines *e, uint64_t serial, at_ns at, const at_action *action)
{
    if (action->kind == AT_ACT_DROP) put_drop(e, serial, at, action);
    if (action->kind == AT_ACT_EVICT) put_evict(e, serial, at, action->worker);
    if (action->kind == AT_ACT_NOTICE) put_notice(e, serial, at, action);
    if (action->kind == AT_ACT_FINISH) put_end(e, serial, at, action->as.finish.why);
}

void at_event_lines_put(at_event_lines *lines, uint64_t serial, at_ns at, const at_record *record)
{
    bool event = record->kind == AT_REC_EVENT;
    if (event && record->event->kind == AT_EV_JOINED) put_join(lines, serial, at, record->event);
    if (event && record->event->kind == AT_EV_LOST) put_lost(lines, serial, at, record);
    if (record->kind == AT_REC_ACTION) put_action(lines, serial, at, record->action);
    if (record->kind == AT_REC_TEXT) put_sentence(lines, serial, at, SAY, record->text);
    if (record->kind == AT_REC_LINK) put_host(lines, serial, record);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

json_t *at_event_lines_json(const at_event_lines *lines, uint64_t since)
{
    json_t  *array = json_array();
    uint64_t first = lines->count > lines->size ? lines->count - lines->size : 0;
    for (uint64_t i = first; i < lines->count; i++) {
        const line *l = &lines->lines[i % lines->size];
        if (l->serial <= since) continue;
        json_array_append_new(array, json_pack("{s:I, s:o, s:s, s:o}", "id", (json_int_t)i, "t",
                                               at_json_seconds(l->at), "kind", kind_name[l->kind],
                                               "text", at_json_text(l->text)));
    }
    return array;
}
