#include "world/sim/faults.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static at_err refuse(const char *entry, at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_USAGE,
                       "use for example die:3@2.5s, freeze:2@1s+500ms or late:1@1s+200ms",
                       "--faults: '%s' is not a valid fault", entry);
}

/* Cuts text at the first `mark`; NULL when there is none. */
static char *cut_at(char *text, char mark)
{
    char *at = text ? strchr(text, mark) : NULL;
    if (!at) return NULL;
    *at = '\0';
    return at + 1;
}

static bool find_kind(const char *name, at_fault_kind *kind)
{
    static const char *const names[] = {
        [AT_FAULT_DIE] = "die", [AT_FAULT_FREEZE] = "freeze", [AT_FAULT_LATE] = "late"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        *kind = (at_fault_kind)i;
        if (strcmp(names[i], name) == 0) return true;
    }
    return false;
}

static at_err read_fault(const char *entry, uint32_t workers, at_fault *fault, at_fail *fail)
{
    char    copy[128];
    int64_t worker;
    if (strlen(entry) >= sizeof copy) return refuse(entry, fail);
    memcpy(copy, entry, strlen(entry) + 1);
    char *who = cut_at(copy, ':'), *when = cut_at(who, '@'), *lasts = cut_at(when, '+');
    if (!when || !find_kind(copy, &fault->kind)) return refuse(entry, fail);
    if (fault->kind != AT_FAULT_DIE && !lasts) return refuse(entry, fail);
    fault->lasts = 0;
    if (!at_text_whole(who, &worker) || !at_text_duration(when, &fault->at))
        return refuse(entry, fail);
    if (lasts && !at_text_duration(lasts, &fault->lasts)) return refuse(entry, fail);
    if (worker < 1 || worker > workers)
        return at_fail_set(fail, AT_ERR_USAGE, "use a worker that exists",
                           "--faults: '%s' names worker %lld, and workers are 1 to %u", entry,
                           (long long)worker, workers);
    fault->worker = (at_node)worker;
    return AT_OK;
}

static int by_time(const void *a, const void *b)
{
    const at_fault *x = a, *y = b;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    return x->worker < y->worker ? -1 : x->worker > y->worker;
}

at_err at_faults_parse(const char *text, uint32_t workers, at_fault *faults, size_t *count,
                       at_fail *fail)
{
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
            err = read_fault(entry, workers, &faults[*count], fail);
        ++*count;
    }
    free(copy);
    if (!err && *count > 0) qsort(faults, *count, sizeof *faults, by_time);
    return err;
}
