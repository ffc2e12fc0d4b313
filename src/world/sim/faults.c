#include "world/sim/faults.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "world/sim/fault_trace.h"

static at_err refuse(const char *entry, at_fail *fail)
{
    assert(entry);
    return at_fail_set(
        fail, AT_ERR_USAGE,
        "use for example die:3@2.5s, join:5@10s, freeze:2@1s+500ms or late:1@1s+200ms",
        "--faults: '%s' is not a valid fault", entry);
}

/* Cuts text at the first `mark`; NULL when there is none. */
static char *cut_at(char *text, char mark)
{
    char *at = text ? strchr(text, mark) : NULL;
    assert(mark != '\0');
    if (!at) return NULL;
    *at = '\0';
    return at + 1;
}

static bool find_kind(const char *name, at_fault_kind *kind)
{
    assert(name);
    static const char *const names[] = {[AT_FAULT_DIE] = "die",
                                        [AT_FAULT_FREEZE] = "freeze",
                                        [AT_FAULT_LATE] = "late",
                                        [AT_FAULT_JOIN] = "join"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        *kind = (at_fault_kind)i;
        if (strcmp(names[i], name) == 0) return true;
    }
    return false;
}

static at_err read_fault(const char *entry, uint32_t workers_max, at_fault *fault, at_fail *fail)
{
    char    copy[128];
    int64_t worker;
    assert(workers_max >= 1);
    if (strlen(entry) >= sizeof copy) return refuse(entry, fail);
    memcpy(copy, entry, strlen(entry) + 1);
    char *who = cut_at(copy, ':'), *when = cut_at(who, '@'), *lasts = cut_at(when, '+');
    if (!when || !find_kind(copy, &fault->kind)) return refuse(entry, fail);
    bool needs = fault->kind == AT_FAULT_FREEZE || fault->kind == AT_FAULT_LATE;
    if ((needs && !lasts) || (lasts && fault->kind == AT_FAULT_JOIN)) return refuse(entry, fail);
    fault->lasts = 0;
    if (!at_text_whole(who, &worker) || !at_text_duration(when, &fault->at))
        return refuse(entry, fail);
    if (lasts && !at_text_duration(lasts, &fault->lasts)) return refuse(entry, fail);
    if (worker < 1 || worker > workers_max)
        return at_fail_set(fail, AT_ERR_USAGE,
                           fault->kind == AT_FAULT_JOIN ? "raise --workers-max"
                                                        : "use a worker that exists",
                           "--faults: '%s' names worker %lld, and workers are 1 to %u", entry,
                           (long long)worker, workers_max);
    fault->worker = (at_node)worker;
    return AT_OK;
}

static int by_time(const void *a, const void *b)
{
    const at_fault *x = a, *y = b;
    assert(x->worker >= 1 && y->worker >= 1);
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    return x->worker < y->worker ? -1 : x->worker > y->worker;
}

void at_faults_sort(at_fault *faults, size_t count)
{
    assert(faults || count == 0);
    if (count > 0) qsort(faults, count, sizeof *faults, by_time);
}

at_err at_faults_parse(const char *text, uint32_t workers_max, at_fault *faults, size_t *count,
                       at_fail *fail)
{
    assert(workers_max >= 1);
    *count = 0;
    if (!text) return AT_OK;
    char *copy = strdup(text), *rest = copy, *entry;
    if (!copy) return at_fail_memory(fail);
    at_err err = AT_OK;
    while (!err && (entry = strsep(&rest, ", "))) {
        if (!*entry) continue;
        if (*count == AT_FAULTS_MAX)
            err = at_fail_set(fail, AT_ERR_USAGE, "use fewer faults",
                              "--faults: more than %d faults", AT_FAULTS_MAX);
        else
            err = read_fault(entry, workers_max, &faults[*count], fail);
        ++*count;
    }
    free(copy);
    if (!err) at_faults_sort(faults, *count);
    return err;
}

static at_err read_text(const char *text, uint32_t workers_max, at_fault **faults, size_t *count,
                        at_fail *fail)
{
    *faults = calloc(AT_FAULTS_MAX, sizeof **faults);
    if (!*faults) return at_fail_memory(fail);
    return at_faults_parse(text, workers_max, *faults, count, fail);
}

at_err at_faults_read(const char *text, const at_fault_options *options, at_fault **faults,
                      size_t *count, at_fail *fail)
{
    static const char trace[] = "trace:";
    *faults = NULL;
    *count = 0;
    if (!text) return AT_OK;
    assert(options->workers >= 1);
    size_t prefix = sizeof trace - 1;
    at_err err = strncmp(text, trace, prefix) == 0
                     ? at_fault_trace_read(text + prefix, options, faults, count, fail)
                     : read_text(text, options->workers_max, faults, count, fail);
    if (!err) return AT_OK;
    free(*faults);
    *faults = NULL;
    *count = 0;
    return err;
}

bool at_faults_have_joins(const at_fault *faults, size_t count)
{
    assert(faults || count == 0);
    for (size_t i = 0; i < count; i++)
        if (faults[i].kind == AT_FAULT_JOIN) return true;
    return false;
}

bool at_faults_joined(const at_fault *faults, size_t count, at_node worker, bool respawn, at_ns now)
{
    bool joined = false;
    assert(worker >= 1);
    for (size_t i = 0; i < count && faults[i].at < now; i++) {
        if (faults[i].worker != worker) continue;
        if (faults[i].kind == AT_FAULT_JOIN) joined = true;
        if (faults[i].kind == AT_FAULT_DIE && !respawn) joined = false;
    }
    return joined;
}

/* Whether a worker is certainly present when faults[end] comes: it was there at the start or has
 * joined, and nothing since could have ended it for good. */
static bool is_present(const at_fault *faults, size_t end, uint32_t workers, bool respawn)
{
    at_node worker = faults[end].worker;
    bool    present = worker <= workers;
    assert(faults[end].kind == AT_FAULT_JOIN);
    for (size_t i = 0; i < end; i++) {
        if (faults[i].worker != worker) continue;
        if (faults[i].kind == AT_FAULT_JOIN) present = true;
        if (faults[i].kind != AT_FAULT_JOIN && !respawn) present = false;
    }
    return present;
}

at_err at_faults_check(const at_fault *faults, size_t count, uint32_t workers, bool respawn,
                       at_fail *fail)
{
    assert(faults || count == 0);
    for (size_t i = 0; i < count; i++) {
        if (faults[i].kind != AT_FAULT_JOIN || !is_present(faults, i, workers, respawn)) continue;
        return at_fail_set(fail, AT_ERR_USAGE,
                           respawn ? "use another worker, or --no-respawn: dead workers are "
                                     "replaced by themselves"
                                   : "use another worker, or let it die before",
                           "--faults: worker %u cannot join at %.9g s: it is present then",
                           faults[i].worker, at_seconds(faults[i].at));
    }
    return AT_OK;
}
