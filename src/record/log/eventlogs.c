#include "record/log/eventlogs.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

static at_err visit_part(const char *folder, const char *name, at_eventlogs_look *look, void *self,
                         at_fail *fail)
{
    char        *path = NULL;
    at_eventlog *log = NULL;
    if (asprintf(&path, "%s/%s", folder, name) < 0)
        return at_fail_memory_for(fail, "for %s", folder);
    at_err err = at_eventlog_open(path, &log, fail);
    if (!err) err = look(self, log, fail);
    at_eventlog_close(log);
    free(path);
    return err;
}

at_err at_eventlog_visit(const char *folder, at_eventlogs_look *look, void *self, at_fail *fail)
{
    assert(folder);
    char name[32] = "events.bin";
    for (int part = 2;; part++) {
        at_fail here = {0};
        at_err  err = visit_part(folder, name, look, self, &here);
        if (err == AT_ERR_MISSING && part > 2) return AT_OK;
        if (err && fail) *fail = here;
        if (err) return err;
        snprintf(name, sizeof name, "events-%d.bin", part);
    }
}
