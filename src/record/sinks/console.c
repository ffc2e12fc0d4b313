/* On a terminal a block of a few lines is drawn over itself, at most ten times a second; sentences
 * go above it and stay. Elsewhere (a file, a pipe) there is a line now and then. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "record/roster.h"
#include "record/sinks/sinks.h"
#include "record/sinks/terminal.h"
#include "record/sinks/view.h"

enum {
    FRAME_SIZE = 32768, /* a block of COLUMNS_MAX columns in colours needs 24 kB */
    COLUMNS_MAX = 500,
    SENTENCE_SIZE = 1024,
    LOSSES_SHOWN = 5 /* a second: more would drown everything else */
};

static const at_ns redraw_every = 100000000, second = 1000000000;

typedef struct loss {
    at_node  worker; /* 0: none waits to be told */
    int64_t  pid;
    uint64_t dropped;
    bool     returns;
    char     how[128];
} loss;

typedef struct console {
    at_console_options options;
    const at_run_info *info;
    at_tally          *tally;
    at_sink            tally_sink;
    at_run_progress    progress;

    uint32_t  workers;
    at_meter *meter, *meter_shown; /* of the running second, of the last whole one */
    at_ns     meter_at;

    at_ns    clock_began;          /* the clock's time of the first record */
    at_ns    now;                  /* since then */
    bool     began;                /* START has come */
    at_ns    due;                  /* when to draw or print next */
    int      lines;                /* of the block on the terminal */
    int      width[AT_VIEW_LINES]; /* of each of them */
    uint64_t step_shown;

    loss     loss;
    at_ns    losses_at; /* start of the second that losses are counted in */
    uint32_t losses, losses_untold;
    char     frame[FRAME_SIZE];
} console;

/* The room there is now. A character in the last column would leave the cursor in a place where
 * terminals disagree what clearing to the end of the line means. */
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
    fflush(self->options.file); /* a console that is gone is no reason to stop training */
}

/* Cursor to the first line of the block, which takes more rows than it has lines when the window
 * has become narrower: a window that is one column wider than what may be used shows all of it. */
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
                 .meter = self->meter_shown,
                 .elapsed = self->now,
                 .columns = window.columns,
                 .rows = window.rows,
                 .colour = self->options.colour,
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
    self->due = self->now + redraw_every;
}

/* A sentence that stays: above the block where there is one. */
static void tell(console *self, const char *sentence)
{
    assert(sentence);
    at_text out = at_text_in(self->frame, sizeof self->frame);
    bool    has_block = self->lines > 0;
    if (has_block) rewind_block(self, &out);
    if (self->options.terminal)
        at_view_wrap(&out, sentence, usable(self).columns, "\x1b[K\n");
    else
        at_text_add(&out, "%s\n", sentence);
    if (has_block) draw_block(self, &out);
    write_out(self, &out);
}

static void print_status(console *self)
{
    assert(!self->options.terminal);
    char    buffer[SENTENCE_SIZE];
    at_text text = at_text_in(buffer, sizeof buffer);
    at_run_progress_show(&self->progress, self->now, SENTENCE_SIZE, &text);
    tell(self, buffer);
    self->step_shown = self->progress.step;
    at_ns pause = self->now / 10; /* a long run needs fewer lines */
    if (pause < 2 * second) pause = 2 * second;
    if (pause > 10 * second) pause = 10 * second;
    self->due = self->now + pause;
}

static void begin(console *self)
{
    char    buffer[SENTENCE_SIZE];
    at_text title = at_text_in(buffer, sizeof buffer);
    self->began = true;
    if (self->options.quiet) return;
    if (self->options.terminal) {
        redraw(self);
        return;
    }
    at_view_title(self->info, self->options.ascii, &title);
    tell(self, buffer);
    self->due = self->now + 2 * second;
}

static bool may_tell_loss(console *self)
{
    if (self->losses == 0 || self->now - self->losses_at >= second) {
        self->losses_at = self->now;
        self->losses = 0;
    }
    return self->losses++ < LOSSES_SHOWN;
}

static void tell_loss(console *self)
{
    assert(self->loss.worker >= 1);
    char    buffer[SENTENCE_SIZE];
    at_text text = at_text_in(buffer, sizeof buffer);
    loss    lost = self->loss;
    self->loss.worker = 0;
    if (!may_tell_loss(self)) {
        self->losses_untold++;
        return;
    }
    if (self->losses_untold > 0) at_text_add(&text, "%u more losses; ", self->losses_untold);
    self->losses_untold = 0;
    at_text_add(&text, "worker %u", lost.worker);
    if (lost.pid > 0) at_text_add(&text, " (pid %lld)", (long long)lost.pid);
    at_text_add(&text, " %s -> ", lost.how);
    if (lost.dropped > 0)
        at_text_add(&text, "%llu samples dropped, ", (unsigned long long)lost.dropped);
    at_text_add(&text, lost.returns ? "replacement started" : "no replacement");
    tell(self, buffer);
}

/* How many samples a loss cost is told by the DROPs that follow it, so its sentence waits until
 * the hub has done with it. */
static void note_loss(console *self, const at_record *record)
{
    assert(record->event->kind == AT_EV_LOST);
    assert(self->loss.worker == 0); /* the one before was told */
    const at_event        *event = record->event;
    const at_worker_tally *worker = &self->tally->worker[event->worker - 1];
    if (worker->state == at_state_finished) return;
    self->loss = (loss){
        .worker = event->worker,
        .pid = worker->pid,
        .returns = event->as.lost.returns,
    };
    at_text how = at_text_in(self->loss.how, sizeof self->loss.how);
    at_text_add(&how, "%s", record->text && *record->text ? record->text : "is gone");
}

static void tell_waiting(console *self, const at_action *action)
{
    assert(action->kind == AT_ACT_NOTICE);
    char    buffer[SENTENCE_SIZE];
    at_text text = at_text_in(buffer, sizeof buffer);
    at_text_add(&text, "waiting %.1f s", at_seconds(action->as.notice.waited));
    if (action->worker > 0) at_text_add(&text, " for worker %u", action->worker);
    at_text_add(&text, ", step %llu", (unsigned long long)action->as.notice.step);
    tell(self, buffer);
}

static void tell_eviction(console *self, at_node worker)
{
    assert(worker >= 1);
    assert(worker <= self->workers);
    char    buffer[SENTENCE_SIZE];
    at_text text = at_text_in(buffer, sizeof buffer);
    int64_t pid = self->tally->worker[worker - 1].pid;
    at_text_add(&text, "worker %u", worker);
    if (pid > 0) at_text_add(&text, " (pid %lld)", (long long)pid);
    at_text_add(&text, " is overdue -> ended");
    tell(self, buffer);
}

static void note_report(console *self, at_node worker, const at_work *work)
{
    assert(worker >= 1);
    assert(worker <= self->workers);
    at_meter *meter = &self->meter[worker - 1];
    meter->compute += work->compute_ns;
    meter->sleep += work->sleep_ns;
    meter->idle += work->idle_ns + work->send_ns;
}

/* Every second the bars change to what was measured in it; a worker whose round takes longer keeps
 * the bar it has. */
static void turn_meters(console *self, at_ns at)
{
    if (at - self->meter_at < second) return;
    self->meter_at = at;
    for (uint32_t i = 0; i < self->workers; i++) {
        at_meter *meter = &self->meter[i];
        if (meter->compute + meter->sleep + meter->idle == 0) continue;
        self->meter_shown[i] = *meter;
        *meter = (at_meter){0};
    }
}

static void put_event(console *self, const at_record *record)
{
    const at_event *event = record->event;
    if (event->kind == AT_EV_START) begin(self);
    if (event->kind == AT_EV_LOST) note_loss(self, record);
    if (event->kind == AT_EV_MESSAGE) note_report(self, event->worker, &event->as.report.work);
}

static void put_action(console *self, const at_action *action)
{
    if (action->kind == AT_ACT_NOTICE) tell_waiting(self, action);
    if (action->kind == AT_ACT_EVICT) tell_eviction(self, action->worker);
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
    self->tally_sink.put(self->tally_sink.self, record);
    at_run_progress_put(&self->progress, record);
    if (record->kind != AT_REC_ACTION && self->loss.worker) tell_loss(self);
    if (record->kind == AT_REC_EVENT) put_event(self, record);
    if (record->kind == AT_REC_ACTION) put_action(self, record->action);
    if (record->kind == AT_REC_TEXT) tell(self, record->text);
    turn_meters(self, record->at);
    if (!self->began || self->options.quiet || self->now < self->due) return;
    if (self->options.terminal)
        redraw(self);
    else
        print_status(self);
}

static void end(console *self)
{
    if (self->loss.worker) tell_loss(self);
    bool is_live = self->began && !self->options.quiet;
    if (is_live && self->options.terminal) redraw(self);
    if (is_live && !self->options.terminal && self->progress.step != self->step_shown)
        print_status(self);
}

static void release(console *self)
{
    at_tally_free(self->tally);
    free(self->meter);
    free(self->meter_shown);
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
    assert(info->plan->workers >= 1);
    console *self = calloc(1, sizeof *self);
    if (!self) return at_fail_memory_for(fail, "for the console");
    self->options = *options;
    self->info = info;
    self->workers = info->plan->workers;
    self->meter = calloc(self->workers, sizeof *self->meter);
    self->meter_shown = calloc(self->workers, sizeof *self->meter_shown);
    self->tally = at_tally_new(info, &self->tally_sink);
    if (!self->meter || !self->meter_shown || !self->tally) {
        release(self);
        return at_fail_memory_for(fail, "for the console");
    }
    self->progress.info = info;
    self->progress.tally = self->tally;
    *sink = (at_sink){.name = "console", .self = self, .put = put, .close = close_sink};
    return AT_OK;
}
