/* On a terminal a block of a few lines is redrawn in place, at most ten times per second; messages
 * are printed above it and stay. Elsewhere (a file, a pipe) a line is printed from time to time. */
#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "record/roster.h"
#include "record/sinks/sinks.h"
#include "record/sinks/terminal.h"
#include "record/sinks/view.h"

enum {
    FRAME_SIZE = 32768, /* a colored block of COLUMNS_MAX columns needs 24 kB */
    COLUMNS_MAX = 500,
    MESSAGE_SIZE = 1024,
    LOSSES_SHOWN = 5 /* per second: more would drown everything else */
};

static const at_ns redraw_every = 100000000, second = 1000000000;

typedef struct loss {
    at_node  worker; /* 0: none is pending */
    int64_t  pid;
    uint64_t dropped;
    bool     returns;
    char     how[128];
} loss;

typedef struct console {
    at_console_options options;
    const at_run_info *info;
    const at_tally    *tally;
    at_tally          *own_tally; /* NULL: `tally` is counted elsewhere */
    at_sink            tally_sink;
    at_run_progress    progress;

    uint32_t       workers;
    at_time_split *split, *split_shown; /* of the current second, of the last complete one */
    at_ns          split_at;

    at_ns    clock_began;          /* clock at the first record */
    at_ns    now;                  /* since then */
    bool     began;                /* START was seen */
    bool     stops;                /* and it was said */
    at_ns    next_at;              /* when to draw or print next */
    int      lines;                /* of the block on the terminal */
    int      width[AT_VIEW_LINES]; /* of each of them */
    uint64_t step_shown;

    loss     loss;
    at_ns    losses_at; /* start of the second in which `losses` are counted */
    uint32_t losses, losses_hidden;
    char     frame[FRAME_SIZE];
} console;

/* The usable size. The last column stays free: after a character there, terminals disagree on what
 * clearing to the end of the line does. */
static at_terminal_size usable(const console *self)
{
    at_terminal_size window = at_terminal_window(self->options.file);
    if (window.columns <= 0) window.columns = self->options.width;
    if (window.columns > COLUMNS_MAX) window.columns = COLUMNS_MAX;
    window.columns = window.columns > 1 ? window.columns - 1 : 1;
    return window;
}

static void write_out(const console *self, const at_text *text)
{
    fwrite(text->bytes, 1, text->used, self->options.file);
    fflush(self->options.file); /* errors are ignored: training continues without a console */
}

/* Moves the cursor to the first line of the block, which takes more rows than lines when the window
 * has become narrower. */
static void rewind_block(console *self, at_text *out)
{
    assert(self->options.terminal);
    assert(self->lines >= 0);
    if (self->lines == 0) return;
    int columns = usable(self).columns + 1;
    at_text_add(out, "\r\x1b[%dA", at_terminal_rows(self->width, self->lines, columns));
}

static void draw_block(console *self, at_text *out)
{
    assert(self->options.terminal);
    at_terminal_size window = usable(self);
    at_view          view = {
                 .progress = &self->progress,
                 .split = self->split_shown,
                 .elapsed = self->now,
                 .columns = window.columns,
                 .rows = window.rows,
                 .color = self->options.color,
                 .ascii = self->options.ascii,
    };
    const char *line = out->bytes + out->used;
    self->lines = at_view_draw(&view, out);
    assert(self->lines <= AT_VIEW_LINES);
    for (int i = 0; i < self->lines; i++) {
        const char *end = strchr(line, '\n');
        self->width[i] = end ? at_view_columns(line, (size_t)(end - line)) : 0;
        if (end) line = end + 1;
    }
    at_text_add(out, "\x1b[J"); /* the block may have become shorter */
}

static void redraw(console *self)
{
    assert(self->began);
    assert(!self->options.quiet);
    at_text out = at_text_in(self->frame, sizeof self->frame);
    rewind_block(self, &out);
    draw_block(self, &out);
    write_out(self, &out);
    self->next_at = self->now + redraw_every;
}

/* Prints a message, above the block if there is one. */
static void print_message(console *self, const char *message)
{
    assert(message);
    at_text out = at_text_in(self->frame, sizeof self->frame);
    bool    has_block = self->lines > 0;
    if (has_block) rewind_block(self, &out);
    if (self->options.terminal)
        at_view_wrap(&out, message, usable(self).columns, "\x1b[K\n");
    else
        at_view_wrap(&out, message, INT_MAX, "\n");
    if (has_block) draw_block(self, &out);
    write_out(self, &out);
}

static void print_status(console *self)
{
    assert(!self->options.terminal);
    char    buffer[MESSAGE_SIZE];
    at_text text = at_text_in(buffer, sizeof buffer);
    at_run_progress_show(&self->progress, self->now, MESSAGE_SIZE, &text);
    print_message(self, buffer);
    self->step_shown = self->progress.step;
    at_ns pause = self->now / 10; /* fewer lines in a long run */
    if (pause < 2 * second) pause = 2 * second;
    if (pause > 10 * second) pause = 10 * second;
    self->next_at = self->now + pause;
}

static void begin(console *self)
{
    char    buffer[MESSAGE_SIZE];
    at_text title = at_text_in(buffer, sizeof buffer);
    self->began = true;
    if (self->options.quiet) return;
    if (self->options.terminal) {
        redraw(self);
        return;
    }
    at_view_title(self->info, self->options.ascii, &title);
    print_message(self, buffer);
    self->next_at = self->now + 2 * second;
}

static void add_worker(at_text *text, at_node worker, int64_t pid)
{
    at_text_add(text, "worker %u", worker);
    if (pid > 0) at_text_add(text, " (pid %lld)", (long long)pid);
}

static bool may_print_loss(console *self)
{
    if (self->losses == 0 || self->now - self->losses_at >= second) {
        self->losses_at = self->now;
        self->losses = 0;
    }
    return self->losses++ < LOSSES_SHOWN;
}

static void print_loss(console *self)
{
    assert(self->loss.worker >= 1);
    char    buffer[MESSAGE_SIZE];
    at_text text = at_text_in(buffer, sizeof buffer);
    loss    lost = self->loss;
    self->loss.worker = 0;
    if (!may_print_loss(self)) {
        self->losses_hidden++;
        return;
    }
    if (self->losses_hidden > 0) at_text_add(&text, "%u more losses; ", self->losses_hidden);
    self->losses_hidden = 0;
    add_worker(&text, lost.worker, lost.pid);
    at_text_add(&text, " %s: ", lost.how);
    if (lost.dropped > 0)
        at_text_add(&text, "%llu samples dropped, ", (unsigned long long)lost.dropped);
    at_text_add(&text, lost.returns ? "replacement follows" : "no replacement");
    print_message(self, buffer);
}

/* The DROPs that follow a loss say how many samples it cost, so its message is printed after the
 * actions of this event. */
static void note_loss(console *self, const at_record *record)
{
    assert(record->event->kind == AT_EV_LOST);
    assert(self->loss.worker == 0); /* the previous one was printed */
    const at_event        *event = record->event;
    const at_worker_tally *worker = &self->tally->worker[event->worker - 1];
    if (worker->state == at_state_finished) return;
    self->loss = (loss){
        .worker = event->worker,
        .pid = worker->pid,
        .returns = event->as.lost.returns,
    };
    at_text how = at_text_in(self->loss.how, sizeof self->loss.how);
    at_text_add(&how, "%s", record->text && *record->text ? record->text : "was lost");
}

/* In virtual time nobody waits. */
static bool shows_waits(const console *self)
{
    assert(self->info);
    bool is_virtual = self->info->world && strcmp(self->info->world, "sim") == 0;
    return !self->options.quiet && !is_virtual;
}

static void print_waiting(console *self, const at_action *action)
{
    assert(action->kind == AT_ACT_NOTICE);
    char    buffer[MESSAGE_SIZE];
    at_text text = at_text_in(buffer, sizeof buffer);
    at_text_add(&text, "step %llu: waiting for ", (unsigned long long)action->as.notice.step);
    if (action->worker > 0)
        at_text_add(&text, "worker %u", action->worker);
    else
        at_text_add(&text, "the workers");
    at_text_add(&text, " (%.1f s)", at_seconds(action->as.notice.waited));
    print_message(self, buffer);
}

static void print_eviction(console *self, const at_action *action)
{
    at_node worker = action->worker;
    assert(worker >= 1);
    assert(worker <= self->workers);
    char    buffer[MESSAGE_SIZE];
    at_text text = at_text_in(buffer, sizeof buffer);
    add_worker(&text, worker, self->tally->worker[worker - 1].pid);
    at_text_add(&text, action->as.evict.outdated
                           ? " computed with outdated parameters again and again: evicted"
                           : " did not report within its lease: evicted");
    print_message(self, buffer);
}

static void note_report(console *self, at_node worker, const at_work *work)
{
    assert(worker >= 1);
    assert(worker <= self->workers);
    at_time_split *split = &self->split[worker - 1];
    split->compute += work->compute_ns;
    split->sleep += work->sleep_ns;
    split->idle += work->idle_ns + work->send_ns;
}

/* The bars are updated every second; a worker without a report in that second keeps its bar. */
static void update_splits(console *self, at_ns at)
{
    if (at - self->split_at < second) return;
    self->split_at = at;
    for (uint32_t i = 0; i < self->workers; i++) {
        at_time_split *split = &self->split[i];
        if (split->compute + split->sleep + split->idle == 0) continue;
        self->split_shown[i] = *split;
        *split = (at_time_split){0};
    }
}

/* On a terminal the line that the signal itself has caused is overwritten. */
static void note_stop(console *self)
{
    if (self->stops || !self->options.terminal || self->options.quiet) return;
    self->stops = true;
    print_message(self, "stopping after the current micro-batches (Ctrl-C again: at once)");
}

static void put_event(console *self, const at_record *record)
{
    const at_event *event = record->event;
    if (event->kind == AT_EV_STOP) note_stop(self);
    if (event->kind == AT_EV_START) begin(self);
    if (event->kind == AT_EV_LOST) note_loss(self, record);
    if (event->kind == AT_EV_MESSAGE && !self->options.quiet)
        note_report(self, event->worker, &event->as.report.work);
}

static void put_action(console *self, const at_action *action)
{
    if (action->kind == AT_ACT_NOTICE && shows_waits(self)) print_waiting(self, action);
    if (action->kind == AT_ACT_EVICT) print_eviction(self, action);
    if (action->kind == AT_ACT_DROP && action->worker == self->loss.worker)
        self->loss.dropped += action->as.drop.samples;
}

static void put(void *opaque, const at_record *record)
{
    console *self = opaque;
    self->now = record->at;
    if (self->options.clock) {
        if (!self->began) self->clock_began = self->options.clock();
        self->now = self->options.clock() - self->clock_began;
    }
    if (self->own_tally) self->tally_sink.put(self->tally_sink.self, record);
    at_run_progress_put(&self->progress, record);
    if (record->kind != AT_REC_ACTION && self->loss.worker) print_loss(self);
    if (record->kind == AT_REC_EVENT) put_event(self, record);
    if (record->kind == AT_REC_ACTION) put_action(self, record->action);
    if (record->kind == AT_REC_TEXT) print_message(self, record->text);
    if (self->options.quiet) return;
    update_splits(self, record->at);
    if (!self->began || self->now < self->next_at) return;
    if (self->options.terminal)
        redraw(self);
    else
        print_status(self);
}

static void end(console *self)
{
    if (self->loss.worker) print_loss(self);
    bool is_live = self->began && !self->options.quiet;
    if (is_live && self->options.terminal) redraw(self);
    if (is_live && !self->options.terminal && self->progress.step != self->step_shown)
        print_status(self);
}

static void release(console *self)
{
    at_tally_free(self->own_tally);
    free(self->split);
    free(self->split_shown);
    free(self);
}

static at_err close_sink(void *opaque, at_fail *fail)
{
    console *self = opaque;
    (void)fail;
    end(self);
    release(self);
    return AT_OK;
}

at_err at_sink_console(const at_run_info *info, const at_console_options *options, at_sink *sink,
                       at_fail *fail)
{
    assert(options->file);
    assert(info->plan->workers_max >= 1);
    console *self = calloc(1, sizeof *self);
    if (!self) return at_fail_memory_for(fail, "for the console");
    self->options = *options;
    self->info = info;
    self->workers = info->plan->workers_max;
    self->split = calloc(self->workers, sizeof *self->split);
    self->split_shown = calloc(self->workers, sizeof *self->split_shown);
    if (!options->tally) self->own_tally = at_tally_new(info, &self->tally_sink);
    self->tally = options->tally ? options->tally : self->own_tally;
    if (!self->split || !self->split_shown || !self->tally) {
        release(self);
        return at_fail_memory_for(fail, "for the console");
    }
    self->progress.info = info;
    self->progress.tally = self->tally;
    *sink = (at_sink){.name = "console", .self = self, .put = put, .close = close_sink};
    return AT_OK;
}
