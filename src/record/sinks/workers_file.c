/* workers.json is for users and scripts that signal, watch or kill workers. So it is always
 * complete (a temporary file is renamed), but not synced: after a crash its pids are void. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/disk.h"
#include "base/folder_guard.h"
#include "base/text.h"
#include "record/roster.h"
#include "record/sinks/sinks.h"

enum {
    HEAD_SIZE = 256,
    LINE_SIZE = 512, /* of one worker */
    WORKERS_FEW = 64 /* up to this number every change is written at once */
};

static const at_ns write_every = 20000000; /* with more workers the file is up to megabytes */

static const at_ns measure_every = 1000000000; /* what has changed is only a measurement */

typedef char host_name[64];

typedef struct workers_file {
    char             *path, *temporary;
    char             *text;
    size_t            text_size;
    uint32_t          workers;
    uint32_t          first_rank; /* of the first worker: hubs come before it */
    bool              dirty;
    at_ns             written_at;
    int               error; /* errno of the first failure, 0: none */
    at_worker_status *roster;
    host_name        *host; /* by worker; empty: this machine */
    at_link_stats    *link; /* by worker; NULL: none is on another machine */
} workers_file;

static void add_worker(at_text *text, at_node id, const at_worker_status *status)
{
    assert(id >= 1);
    assert(status->state);
    at_text_add(text, "    {\"id\": %u, \"pid\": ", id);
    if (status->pid > 0)
        at_text_add(text, "%lld", (long long)status->pid);
    else
        at_text_add(text, "null");
    at_text_add(text, ", \"incarnation\": %u, \"state\": \"%s\"", status->incarnation,
                status->state);
}

static void add_link(at_text *text, const at_link_stats *link)
{
    if (!link->address[0]) return;
    at_text_add(text, ", \"host\": \"%s\", \"address\": \"%s\"", link->host, link->address);
    if (link->round_trip_ns > 0)
        at_text_add(text, ", \"round_trip_seconds\": %.6f", at_seconds(link->round_trip_ns));
    at_text_add(text, ", \"sent_bytes\": %llu, \"received_bytes\": %llu",
                (unsigned long long)link->sent_bytes, (unsigned long long)link->received_bytes);
}

static at_text format_file(workers_file *self)
{
    at_text text = at_text_in(self->text, self->text_size);
    at_text_add(&text, "{\n  \"anytime\": \"%s\",\n  \"hub\": %ld,\n  \"workers\": [\n",
                ANYTIME_VERSION, (long)getpid());
    for (uint32_t i = 0; i < self->workers; i++) {
        add_worker(&text, i + 1, &self->roster[i]);
        if (self->host[i][0])
            at_text_add(&text, ", \"host\": \"%s\", \"rank\": %u", self->host[i],
                        self->first_rank + i);
        if (self->link) add_link(&text, &self->link[i]);
        at_text_add(&text, i + 1 < self->workers ? "},\n" : "}\n");
    }
    at_text_add(&text, "  ]\n}\n");
    assert(!text.full);
    return text;
}

/* Returns an errno. */
static int replace_file(const workers_file *self, const char *bytes, size_t size)
{
    assert(bytes);
    assert(size > 0);
    int error = at_folder_guard_check(self->temporary);
    if (error) return error;
    int fd =
        at_disk->open(self->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0) return errno;
    while (size > 0 && !error) {
        ssize_t done = at_disk->write(fd, bytes, size);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) error = errno;
        if (done > 0) bytes += done, size -= (size_t)done;
    }
    if (at_disk->close(fd) && !error) error = errno;
    if (!error && at_disk->rename(self->temporary, self->path)) error = errno;
    if (error) at_disk->unlink(self->temporary);
    return error;
}

static void rewrite(workers_file *self, at_ns at)
{
    assert(self->dirty);
    at_text text = format_file(self);
    int     error = replace_file(self, text.bytes, text.used);
    if (!self->error) self->error = error;
    self->dirty = false;
    self->written_at = at;
}

static void note_host(workers_file *self, const at_record *record)
{
    if (record->kind != AT_REC_EVENT || record->event->kind != AT_EV_JOINED) return;
    at_node worker = record->event->worker;
    assert(worker >= 1);
    assert(worker <= self->workers);
    const char *host = record->text ? record->text : "";
    char       *name = self->host[worker - 1];
    if (*host || *name) snprintf(name, sizeof(host_name), "%s", host);
}

/* A worker that has moved is news; a measurement waits for its turn. */
static void note_link(workers_file *self, const at_record *record)
{
    if (record->kind != AT_REC_LINK) return;
    if (!self->link) self->link = calloc(self->workers, sizeof *self->link);
    if (!self->link) return;
    at_link_stats *link = &self->link[record->node - 1];
    bool           moved = strcmp(link->address, record->link->address) != 0;
    bool           due = record->at - self->written_at >= measure_every;
    *link = *record->link;
    if (moved || (self->written_at != AT_NEVER && due)) self->dirty = true;
}

static void put(void *opaque, const at_record *record)
{
    workers_file *self = opaque;
    note_host(self, record);
    note_link(self, record);
    if (at_roster_put(self->roster, self->workers, record)) self->dirty = true;
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
    workers_file *self = opaque;
    at_err        err = AT_OK;
    if (self->dirty) rewrite(self, 0);
    if (self->error)
        err = at_fail_set(fail, AT_ERR_IO,
                          self->error == ENOSPC ? "the disk is full: free some space" : NULL,
                          "%s: cannot write: %s", self->path, strerror(self->error));
    free(self->path);
    free(self->temporary);
    free(self->text);
    free(self->roster);
    free(self->host);
    free(self->link);
    free(self);
    return err;
}

static bool allocate(workers_file *self, const char *folder)
{
    assert(self->workers >= 1);
    if (asprintf(&self->path, "%s/workers.json", folder) < 0) self->path = NULL;
    if (asprintf(&self->temporary, "%s/.workers.json.tmp", folder) < 0) self->temporary = NULL;
    self->text_size = HEAD_SIZE + (size_t)self->workers * LINE_SIZE;
    self->text = malloc(self->text_size);
    self->roster = calloc(self->workers, sizeof *self->roster);
    self->host = calloc(self->workers, sizeof *self->host);
    return self->path && self->temporary && self->text && self->roster && self->host;
}

at_err at_sink_workers(const at_run_info *info, at_sink *sink, at_fail *fail)
{
    assert(info->folder);
    assert(info->plan->workers_max <= AT_WORKERS_LISTED);
    workers_file *self = calloc(1, sizeof *self);
    if (!self) return at_fail_memory(fail);
    self->workers = info->plan->workers_max;
    self->first_rank = at_plan_hubs(info->plan);
    self->written_at = AT_NEVER;
    if (!allocate(self, info->folder)) {
        close_sink(self, NULL);
        return at_fail_memory(fail);
    }
    at_roster_init(self->roster, self->workers, info->plan->workers);
    *sink = (at_sink){.name = "workers", .self = self, .put = put, .close = close_sink};
    return AT_OK;
}
