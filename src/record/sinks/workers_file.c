/* workers.json is for people and scripts that want to signal, watch or kill a worker, so it is
 * always whole (written beside, then renamed) but not synced: after a power cut its pids mean
 * nothing. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "record/roster.h"
#include "record/sinks/sinks.h"

enum {
    HEAD_SIZE = 256,
    LINE_SIZE = 256, /* of one worker */
    WORKERS_FEW = 64 /* up to here every change is written at once */
};

static const at_ns write_every = 20000000; /* with more workers: a file of a megabyte is not free */

typedef struct workersfile {
    char     *path, *temporary;
    char     *text;
    size_t    text_size;
    uint32_t  workers;
    uint32_t  first_rank; /* of the first worker: a hub comes before it */
    bool      dirty;
    at_ns     written_at;
    int       error; /* errno of the first failure, 0: none */
    at_place *place;
} workersfile;

static void add_worker(at_text *text, at_node id, uint32_t rank, const at_place *place)
{
    assert(id >= 1);
    assert(place->state);
    at_text_add(text, "    {\"id\": %u, \"pid\": ", id);
    if (place->pid > 0)
        at_text_add(text, "%lld", (long long)place->pid);
    else
        at_text_add(text, "null");
    if (place->host[0]) at_text_add(text, ", \"host\": \"%s\", \"rank\": %u", place->host, rank);
    at_text_add(text, ", \"incarnation\": %u, \"state\": \"%s\"}", place->incarnation,
                place->state);
}

static at_text compose(workersfile *self)
{
    at_text text = at_text_in(self->text, self->text_size);
    at_text_add(&text, "{\n  \"anytime\": \"%s\",\n  \"hub\": %ld,\n  \"workers\": [\n",
                ANYTIME_VERSION, (long)getpid());
    for (uint32_t i = 0; i < self->workers; i++) {
        add_worker(&text, i + 1, self->first_rank + i, &self->place[i]);
        at_text_add(&text, i + 1 < self->workers ? ",\n" : "\n");
    }
    at_text_add(&text, "  ]\n}\n");
    assert(!text.full);
    return text;
}

/* Returns an errno. */
static int replace(const workersfile *self, const char *bytes, size_t size)
{
    assert(bytes);
    assert(size > 0);
    int fd = open(self->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) return errno;
    int error = 0;
    while (size > 0 && !error) {
        ssize_t done = write(fd, bytes, size);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) error = errno;
        if (done > 0) bytes += done, size -= (size_t)done;
    }
    if (close(fd) && !error) error = errno;
    if (!error && rename(self->temporary, self->path)) error = errno;
    if (error) unlink(self->temporary);
    return error;
}

static void rewrite(workersfile *self, at_ns at)
{
    assert(self->dirty);
    at_text text = compose(self);
    int     error = replace(self, text.bytes, text.used);
    if (!self->error) self->error = error;
    self->dirty = false;
    self->written_at = at;
}

static void put(void *opaque, const at_record *record)
{
    workersfile *self = opaque;
    if (at_roster_put(self->place, self->workers, record)) self->dirty = true;
    if (!self->dirty) return;
    bool is_few = self->workers <= WORKERS_FEW;
    bool is_order = record->kind == AT_REC_ACTION && record->action->kind == AT_ACT_SEND &&
                    !record->action->as.order.leave;
    bool is_first = self->written_at == AT_NEVER;
    if (is_first ? is_few || is_order : is_few || record->at - self->written_at >= write_every)
        rewrite(self, record->at);
}

static at_err close_sink(void *opaque, at_fail *fail)
{
    workersfile *self = opaque;
    at_err       err = AT_OK;
    if (self->dirty) rewrite(self, 0);
    if (self->error)
        err = at_fail_set(fail, AT_ERR_IO,
                          self->error == ENOSPC ? "the disk is full: free some space" : NULL,
                          "%s: cannot write: %s", self->path, strerror(self->error));
    free(self->path);
    free(self->temporary);
    free(self->text);
    free(self->place);
    free(self);
    return err;
}

static bool reserve(workersfile *self, const char *folder)
{
    assert(self->workers >= 1);
    if (asprintf(&self->path, "%s/workers.json", folder) < 0) self->path = NULL;
    if (asprintf(&self->temporary, "%s/.workers.json.tmp", folder) < 0) self->temporary = NULL;
    self->text_size = HEAD_SIZE + (size_t)self->workers * LINE_SIZE;
    self->text = malloc(self->text_size);
    self->place = calloc(self->workers, sizeof *self->place);
    return self->path && self->temporary && self->text && self->place;
}

at_err at_sink_workers(const at_run_info *info, at_sink *sink, at_fail *fail)
{
    assert(info->folder);
    assert(info->plan->workers <= AT_WORKERS_MAX);
    workersfile *self = calloc(1, sizeof *self);
    if (!self) return at_fail_memory(fail);
    self->workers = info->plan->workers;
    bool equals = info->plan->topology == AT_TOPOLOGY_ALLREDUCE;
    self->first_rank = info->hubs > 1 ? info->hubs : equals ? 0 : 1;
    self->written_at = AT_NEVER;
    if (!reserve(self, info->folder)) {
        close_sink(self, NULL);
        return at_fail_memory(fail);
    }
    at_roster_init(self->place, self->workers);
    *sink = (at_sink){.name = "workers", .self = self, .put = put, .close = close_sink};
    return AT_OK;
}
