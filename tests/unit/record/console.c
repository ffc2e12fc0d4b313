#include "record/sinks/sinks.h"

#include <fcntl.h>
#include <math.h>
#include <sys/ioctl.h>

#include "record/sinks/terminal.h"
#include "record/sinks/view.h"
#include "script.h"

static FILE  *stream;
static char  *written; /* what the console wrote to it */
static size_t written_size;

static void begin(script *run, uint32_t workers, at_console_options options)
{
    at_sink sink;
    script_begin(run, workers);
    stream = open_memstream(&written, &written_size);
    assert_non_null(stream);
    options.file = stream;
    if (options.width == 0) options.width = 80;
    assert_int_equal(at_sink_console(&run->info, &options, &sink, NULL), AT_OK);
    at_recorder_add(&run->recorder, sink);
}

static void start(script *run)
{
    script_start(run);
    for (at_node worker = 1; worker <= run->plan.workers_max; worker++)
        script_join(run, worker, 100 + (int64_t)worker, 1);
    script_order(run, 1, AT_NEVER);
}

static void end(script *run)
{
    script_close(run);
    fclose(stream);
    script_end(run);
}

/* One step that ends at `at`. */
static void step(script *run, at_ns at, uint32_t samples, double loss)
{
    at_piece  piece = {.worker = 1, .samples = samples, .version = run->version, .weight = 1};
    at_action action = {.kind = AT_ACT_APPLY};
    run->at = at;
    action.as.apply.step = run->version + 1;
    action.as.apply.samples = samples;
    action.as.apply.samples_used = run->version * samples;
    action.as.apply.pieces = &piece;
    action.as.apply.count = 1;
    action.as.apply.loss_sum = loss * samples;
    script_action(run, action, (at_record){.lr = 0.1});
    run->version++;
}

static void check_written(const char *expected)
{
    assert_string_equal(written, expected);
    free(written);
}

static void plain_lines_are_printed_every_two_seconds(void **state)
{
    (void)state;
    script run;
    begin(&run, 10, (at_console_options){0});
    run.plan.limits.steps = 20;
    start(&run);
    for (int i = 1; i <= 10; i++) {
        step(&run, i * AT_SEC(0.5), 100, 2);
        if (i == 6) script_evaluated(&run, 5, AT_SEC(0.5), 0.8463, 0.44);
    }
    end(&run);
    check_written(
        "amb · softmax · fashion-mnist · 10 workers\n"
        "step 4/20  20%  elapsed 2s  ETA 8s  loss 2.000  200 samples/s  500ms/step  lr 0.1\n"
        "step 8/20  40%  elapsed 4s  ETA 6s  loss 2.000  accuracy 0.846  200 samples/s  "
        "500ms/step  lr 0.1\n"
        "step 10/20  50%  elapsed 5s  ETA 5s  loss 2.000  accuracy 0.846  200 samples/s  "
        "500ms/step  lr 0.1\n");
}

static void plain_lines_become_rarer_in_a_long_run(void **state)
{
    (void)state;
    script run;
    begin(&run, 1, (at_console_options){0});
    start(&run);
    for (int i = 1; i <= 1000; i++) step(&run, AT_SEC(i), 1, 2);
    end(&run);
    int lines = 0;
    for (const char *c = written; *c; c++) lines += *c == '\n';
    assert_in_range(lines, 100, 125);
    free(written);
}

/* Checks the last line of a run that made 3 steps of 1000 samples in 3 s. */
static void check_goal(at_limits limits, const char *expected)
{
    script run;
    begin(&run, 1, (at_console_options){0});
    run.plan.limits = limits;
    start(&run);
    for (int i = 1; i <= 3; i++) step(&run, AT_SEC(i), 1000, 0.0001);
    script_evaluated(&run, 3, 0, 0.45, 0.5);
    end(&run);
    const char *last = written + strlen(written) - 1;
    while (last > written && last[-1] != '\n') last--;
    char    line[200];
    at_text text = at_text_in(line, sizeof line);
    at_text_add(&text, "%s  1000 samples/s  1.00s/step  lr 0.1\n", expected);
    assert_string_equal(last, line);
    free(written);
}

static void progress_is_measured_toward_the_nearest_limit(void **state)
{
    (void)state;
    check_goal((at_limits){0}, "step 3  elapsed 3s  loss 1.00e-04  accuracy 0.450");
    check_goal((at_limits){.steps = 4, .samples = 6000},
               "step 3/4  75%  elapsed 3s  ETA 1s  loss 1.00e-04  accuracy 0.450");
    check_goal((at_limits){.steps = 100, .samples = 6000},
               "step 3/100  sample 3000/6000  50%  elapsed 3s  ETA 3s  loss 1.00e-04  "
               "accuracy 0.450");
    check_goal((at_limits){.samples = 120000, .epochs = true},
               "step 3  epoch 0.05/2  2%  elapsed 3s  ETA 1min57  loss 1.00e-04  accuracy 0.450");
    check_goal((at_limits){.time = AT_SEC(30)},
               "step 3  time 3.00s/30.0s  10%  ETA 27s  loss 1.00e-04  accuracy 0.450");
    check_goal((at_limits){.targets = 1, .target = {{AT_METRIC_ACCURACY, 0.9}}},
               "step 3  50%  elapsed 3s  loss 1.00e-04  accuracy 0.450/0.9");
    check_goal(
        (at_limits){.targets = 2, .target = {{AT_METRIC_ACCURACY, 0.9}, {AT_METRIC_LOSS, 0.2}}},
        "step 3  40%  elapsed 3s  loss 1.00e-04  accuracy 0.450/0.9  test loss 0.500/0.2");
}

static void a_resumed_run_does_not_count_earlier_progress(void **state)
{
    (void)state;
    script run;
    begin(&run, 1, (at_console_options){0});
    run.plan.limits.steps = 100;
    run.version = 50;
    start(&run);
    for (int i = 1; i <= 25; i++) step(&run, i * AT_SEC(0.04), 1, 1);
    end(&run);
    check_written("amb · softmax · fashion-mnist · 1 worker\n"
                  "step 75/100  75%  elapsed 1s  ETA 1s  loss 1.000  25 samples/s  40.0ms/step  "
                  "lr 0.1\n");
}

static void the_time_of_a_resumed_run_includes_that_before(void **state)
{
    (void)state;
    script run;
    begin(&run, 1, (at_console_options){0});
    run.plan.limits.time = AT_SEC(12);
    run.info.resume = &(at_snapshot){.version = 50, .elapsed = AT_SEC(5)};
    run.version = 50;
    start(&run);
    for (int i = 1; i <= 25; i++) step(&run, i * AT_SEC(0.04), 1, 1);
    end(&run);
    check_written("amb · softmax · fashion-mnist · 1 worker\n"
                  "step 75  time 6.00s/12.0s  50%  ETA 6s  loss 1.000  25 samples/s  40.0ms/step  "
                  "lr 0.1\n");
}

static void a_resumed_run_begins_where_it_was(void **state)
{
    (void)state;
    script run;
    begin(&run, 1, (at_console_options){0});
    run.plan.limits = (at_limits){.steps = 100, .samples = 6000};
    run.info.resume = &(at_snapshot){.version = 25, .samples_used = 3000};
    run.version = 25;
    start(&run);
    run.at = AT_SEC(3);
    script_evaluated(&run, 25, 0, 0.45, 0.5);
    end(&run);
    check_written("amb · softmax · fashion-mnist · 1 worker\n"
                  "step 25/100  sample 3000/6000  50%  elapsed 3s  accuracy 0.450\n");
}

static void the_last_line_of_a_reached_target_says_so(void **state)
{
    (void)state;
    script run;
    begin(&run, 1, (at_console_options){0});
    run.plan.limits =
        (at_limits){.steps = 100, .targets = 1, .target = {{AT_METRIC_ACCURACY, 0.4}}};
    start(&run);
    for (int i = 1; i <= 3; i++) step(&run, AT_SEC(i), 1000, 0.0001);
    script_evaluated(&run, 3, 0, 0.45, 0.5);
    script_action(&run, (at_action){.kind = AT_ACT_FINISH, .as.finish.why = AT_END_TARGET},
                  (at_record){.at = AT_SEC(3)});
    end(&run);
    assert_non_null(strstr(written, "step 3/100  target reached  elapsed 3s  loss"));
    free(written);
}

static void play_troubles(script *run)
{
    at_action notice = {.kind = AT_ACT_NOTICE, .worker = 2};
    notice.as.notice.waited = AT_SEC(3.14);
    notice.as.notice.step = 412;
    script_action(run, notice, (at_record){0});
    script_lost(run, 2, "killed by signal 9", true);
    script_drop(run, 2, 20, AT_DROP_LOST);
    script_drop(run, 2, 12, AT_DROP_LOST);
    script_join(run, 2, 4711, 2);
    script_action(run, (at_action){.kind = AT_ACT_EVICT, .worker = 1}, (at_record){0});
    script_lost(run, 1, "killed by signal 9", false);
    script_say(run, "the disk is nearly full");
    script_leave(run, 2);
    script_lost(run, 2, "ended", false); /* as ordered: nothing is printed */
}

static void quiet_prints_only_losses_and_warnings(void **state)
{
    (void)state;
    script run;
    begin(&run, 2, (at_console_options){.quiet = true});
    start(&run);
    for (int i = 1; i <= 100; i++) step(&run, AT_SEC(i), 1, 1);
    play_troubles(&run);
    end(&run);
    check_written("worker 2 (pid 102) killed by signal 9: 32 samples dropped, replacement follows\n"
                  "worker 1 (pid 101) did not report within its lease: evicted\n"
                  "worker 1 (pid 101) killed by signal 9: no replacement\n"
                  "the disk is nearly full\n");
}

static void waits_are_printed_in_real_time_only(void **state)
{
    (void)state;
    static const char *const worlds[] = {"local", "sim"};
    for (int i = 0; i < 2; i++) {
        script run;
        begin(&run, 2, (at_console_options){0});
        run.info.world = worlds[i];
        start(&run);
        play_troubles(&run);
        end(&run);
        assert_int_equal(strstr(written, "waiting for worker 2 (3.1 s)") != NULL, i == 0);
        free(written);
    }
}

static void many_losses_are_summarized(void **state)
{
    (void)state;
    script run;
    begin(&run, 1, (at_console_options){.quiet = true});
    start(&run);
    for (uint32_t i = 2; i < 200; i++) {
        run.at += AT_MS(10);
        script_lost(&run, 1, "killed by signal 9", true);
        script_join(&run, 1, i, i);
    }
    end(&run);
    int lines = 0;
    for (const char *c = written; *c; c++) lines += *c == '\n';
    assert_int_equal(lines, 10); /* five per second */
    assert_non_null(strstr(written, "\n95 more losses; worker 1 (pid "));
    free(written);
}

/* A minimal terminal emulator, as far as the console needs one. */
enum { ROWS = 60, COLUMNS = 250 };
typedef struct terminal {
    int  width, row, column, row_max;
    bool colored;
    char cell[ROWS][COLUMNS][5];
} terminal;

static void clear_from(terminal *it, int row, int column)
{
    memset(it->cell[row][column], 0, sizeof it->cell[row] - (size_t)column * 5);
}

static const char *run_escape(terminal *it, const char *c)
{
    char *letter;
    assert_int_equal(*c++, '[');
    long number = strtol(c, &letter, 10);
    switch (*letter) {
    case 'A':
        it->row -= (int)number;
        assert_true(it->row >= 0);
        break;
    case 'K': clear_from(it, it->row, it->column); break;
    case 'J':
        clear_from(it, it->row, it->column);
        for (int row = it->row + 1; row < ROWS; row++) clear_from(it, row, 0);
        break;
    case 'm': it->colored = true; break;
    default: fail_msg("unknown sequence %c", *letter);
    }
    return letter + 1;
}

/* Shows the text; a character in or past the last column fails. */
static void show(terminal *it, const char *text)
{
    for (const char *c = text; *c;) {
        if (*c == '\x1b') {
            c = run_escape(it, c + 1);
        } else if (*c == '\n' || *c == '\r') {
            it->row += *c++ == '\n';
            it->column = 0;
            assert_true(it->row < ROWS);
            if (it->row > it->row_max) it->row_max = it->row;
        } else {
            int size = 1;
            while (((unsigned char)c[size] & 0xc0) == 0x80) size++;
            assert_true(it->width == 1 || it->column < it->width - 1);
            memcpy(it->cell[it->row][it->column], c, (size_t)size);
            it->cell[it->row][it->column++][size] = '\0';
            c += size;
        }
    }
}

static const char *row_text(const terminal *it, int row)
{
    static char text[COLUMNS * 5];
    at_text     out = at_text_in(text, sizeof text);
    for (int i = 0; i < COLUMNS && it->cell[row][i][0]; i++)
        at_text_add(&out, "%s", it->cell[row][i]);
    while (out.used > 0 && text[out.used - 1] == ' ') text[--out.used] = '\0';
    return text;
}

static void report(script *run, at_node worker, uint64_t sequence, at_ns compute, at_ns sleep,
                   at_ns idle)
{
    script_report(
        run, worker, 1, sequence,
        (at_work){.samples = 1, .compute_ns = compute, .sleep_ns = sleep, .idle_ns = idle});
}

static void play_terminal(script *run, uint32_t workers, at_console_options options)
{
    begin(run, workers, options);
    run->plan.limits.steps = 40;
    start(run);
    for (int i = 1; i <= 20; i++) {
        run->at = i * AT_SEC(0.25);
        for (at_node worker = 1; worker <= workers; worker++)
            report(run, worker, (uint64_t)i, AT_MS(6), AT_MS(worker), AT_MS(4 - worker % 4));
        step(run, i * AT_SEC(0.25), 100, 2);
    }
}

static void the_block_is_redrawn_in_place_and_messages_stay_above(void **state)
{
    (void)state;
    script          run;
    static terminal it;
    memset(&it, 0, sizeof it);
    it.width = 100;
    play_terminal(&run, 4, (at_console_options){.terminal = true, .width = 100});
    play_troubles(&run);
    end(&run);
    show(&it, written);
    assert_string_equal(row_text(&it, 0), "step 412: waiting for worker 2 (3.1 s)");
    assert_string_equal(row_text(&it, 4), "the disk is nearly full");
    assert_string_equal(row_text(&it, 5),
                        "amb · softmax · fashion-mnist · 4 workers   █ compute ▓ sleep ░ idle");
    assert_string_equal(row_text(&it, 6), "████████░░░░░░░  step 20/40  50%  elapsed 5s  ETA 5s  "
                                          "loss 2.000  400 samples/s  250ms/step  lr 0.1");
    assert_string_equal(row_text(&it, 7),
                        "1 evicted      2 ██████▓▓░░   3 ██████▓▓▓░   4 ████▓▓▓░░░");
    assert_string_equal(row_text(&it, 8), "");
    assert_int_equal(it.row, 8);
    assert_false(it.colored);
    assert_null(strstr(
        written, "\x1b[?25l")); /* the cursor is never hidden, so a killed run leaves it visible */
    free(written);
}

static void no_line_is_wider_than_the_terminal(void **state)
{
    (void)state;
    static terminal it;
    for (int width = 1; width < 240; width++)
        for (uint32_t workers = 1; workers <= 40; workers += 13) {
            script run;
            memset(&it, 0, sizeof it);
            it.width = width;
            play_terminal(&run, workers,
                          (at_console_options){.terminal = true, .color = true, .width = width});
            if (width > 20)
                script_say(&run, "words that need more than one line in a narrow window");
            end(&run);
            show(&it, written);
            assert_true(it.colored);
            free(written);
        }
}

static void workers_have_a_bar_each_while_they_fit(void **state)
{
    (void)state;
    script          run;
    static terminal it;
    memset(&it, 0, sizeof it);
    it.width = 80;
    play_terminal(&run, 18, (at_console_options){.terminal = true, .width = 80});
    end(&run);
    show(&it, written);
    assert_string_equal(row_text(&it, 5), "16 ██▓▓▓▓▓▓░░   17 ██▓▓▓▓▓▓▓░   18 ██▓▓▓▓▓▓▓░");
    assert_string_equal(row_text(&it, 6), "");
    free(written);
}

static void too_many_workers_are_drawn_in_groups(void **state)
{
    (void)state;
    script          run;
    static terminal it;
    memset(&it, 0, sizeof it);
    it.width = 80;
    play_terminal(&run, 1000, (at_console_options){.terminal = true, .width = 80});
    script_lost(&run, 1, "killed by signal 9", false);
    script_lost(&run, 1000, "killed by signal 9", false);
    end(&run);
    show(&it, written);
    assert_string_equal(row_text(&it, 2), "amb · softmax · fashion-mnist · 1000 workers"
                                          "   █ compute ▓ sleep ░ idle × lost");
    assert_string_equal(row_text(&it, 4),
                        "     1-42 ██▓▓▓▓▓▓░×       43-84 █▓▓▓▓▓▓▓▓▓      85-126 █▓▓▓▓▓▓▓▓▓");
    assert_string_equal(row_text(&it, 11), "  883-924 ▓▓▓▓▓▓▓▓▓▓     925-966 ▓▓▓▓▓▓▓▓▓▓    "
                                           "967-1000 ▓▓▓▓▓▓▓▓▓×");
    assert_string_equal(row_text(&it, 12), "all workers: compute 1%, sleep 98%, idle 0%, 2 lost");
    assert_string_equal(row_text(&it, 13), "");
    free(written);
}

static void without_utf8_bars_are_ascii(void **state)
{
    (void)state;
    static terminal it;
    for (uint32_t workers = 4; workers <= 400; workers += 396) {
        script run;
        memset(&it, 0, sizeof it);
        it.width = 100;
        play_terminal(&run, workers,
                      (at_console_options){.terminal = true, .ascii = true, .width = 100});
        end(&run);
        show(&it, written);
        for (const char *c = written; *c; c++) assert_true((unsigned char)*c < 0x80);
        free(written);
        if (workers > 4) continue;
        assert_string_equal(row_text(&it, 0),
                            "amb - softmax - fashion-mnist - 4 workers   # compute = sleep . idle");
        assert_string_equal(row_text(&it, 2),
                            "1 ######=...   2 ######==..   3 ######===.   4 ####===...");
    }
}

static void sixty_columns_have_room_for_the_bar_and_the_time_left(void **state)
{
    (void)state;
    script          run;
    static terminal it;
    memset(&it, 0, sizeof it);
    it.width = 60;
    play_terminal(&run, 4, (at_console_options){.terminal = true, .width = 60});
    end(&run);
    show(&it, written);
    assert_non_null(strstr(written, "█░"));
    assert_non_null(strstr(written, "step 20/40  50%  elapsed 5s  ETA 5s  loss"));
    free(written);
}

/* A block taller than the window could not be redrawn in place. */
static void the_block_is_less_tall_than_the_window(void **state)
{
    (void)state;
    script        run;
    at_sink       sink;
    at_time_split split[300] = {{0}};
    char          buffer[32768];
    script_begin(&run, 300);
    at_tally       *tally = at_tally_new(&run.info, &sink);
    at_run_progress progress = {.info = &run.info, .tally = tally};
    for (int rows = 1; rows < 40; rows++)
        for (int columns = 1; columns < 200; columns += 3) {
            at_view view = {
                .progress = &progress, .split = split, .columns = columns, .rows = rows};
            at_text out = at_text_in(buffer, sizeof buffer);
            int     lines = at_view_draw(&view, &out), ends = 0;
            for (const char *c = buffer; *c; c++) ends += *c == '\n';
            assert_int_equal(lines, ends);
            assert_true(lines < rows || lines == 1);
        }
    at_tally_free(tally);
    script_end(&run);
}

static void a_narrower_window_wraps_lines(void **state)
{
    (void)state;
    const int width[] = {79, 40, 0, 80};
    assert_int_equal(at_terminal_rows(width, 4, 100), 4);
    assert_int_equal(at_terminal_rows(width, 4, 80), 4);
    assert_int_equal(at_terminal_rows(width, 4, 40), 2 + 1 + 1 + 2);
    assert_int_equal(at_terminal_rows(width, 4, 39), 3 + 2 + 1 + 3);
    assert_int_equal(at_terminal_rows(width, 0, 39), 0);
}

static void the_block_is_redrawn_at_most_ten_times_per_second(void **state)
{
    (void)state;
    script run;
    begin(&run, 1, (at_console_options){.terminal = true});
    start(&run);
    for (int i = 1; i <= 5000; i++) step(&run, AT_US(200.0 * i), 1, 1);
    end(&run);
    int frames = 0;
    for (const char *c = written; (c = strstr(c, "amb · ")); c++) frames++;
    assert_in_range(frames, 9, 13);
    free(written);
}

static at_ns stopped_clock(void)
{
    return 77;
}

static void a_separate_clock_paces_a_simulation(void **state)
{
    (void)state;
    script run;
    begin(&run, 1, (at_console_options){.clock = stopped_clock});
    start(&run);
    for (int i = 1; i <= 1000; i++) step(&run, AT_SEC(1000.0 * i), 1, 1);
    end(&run);
    check_written("amb · softmax · fashion-mnist · 1 worker\n"
                  "step 1000  loss 1.000  0.001 samples/s  16min40/step  lr 0.1\n");
}

static void long_messages_break_at_spaces(void **state)
{
    (void)state;
    char    buffer[200];
    at_text out = at_text_in(buffer, sizeof buffer);
    at_view_wrap(&out, "one two three four", 9, "|");
    at_view_wrap(&out, "äöüäöüäöüäöü", 5, "|");
    at_view_wrap(&out, "two\nlines", 50, "|");
    assert_string_equal(buffer, "one two|three|four|äöüäö|üäöüä|öü|two|lines|");
    const char colored[] = "\x1b[32mäb\x1b[0m c";
    assert_int_equal(at_view_columns(colored, strlen(colored)), 4);
    assert_int_equal(at_view_columns(colored, 3), 0);
}

/* Names come from files and other machines. */
static void names_and_messages_cannot_control_the_terminal(void **state)
{
    (void)state;
    for (int is_terminal = 0; is_terminal < 2; is_terminal++) {
        script run;
        begin(&run, 1, (at_console_options){.terminal = is_terminal});
        run.info.data = "a\x1b]0;b\x07\nc";
        start(&run);
        at_recorder_put(&run.recorder,
                        &(at_record){.kind = AT_REC_TEXT, .text = "d\x1b[2J\xc2\x9b"});
        end(&run);
        assert_non_null(strstr(written, "a?]0;b??c"));
        assert_non_null(strstr(written, "d?[2J??"));
        assert_null(strstr(written, "\x1b[2J"));
        free(written);
    }
}

static void the_terminal_is_detected(void **state)
{
    (void)state;
    int            hub = posix_openpt(O_RDWR | O_NOCTTY);
    struct winsize size = {.ws_row = 24, .ws_col = 123};
    if (hub < 0) skip(); /* no pseudo-terminals on this machine */
    assert_int_equal(grantpt(hub) || unlockpt(hub) || ioctl(hub, TIOCSWINSZ, &size), 0);
    FILE *file = fopen(ptsname(hub), "w");
    assert_non_null(file);
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
    at_console_options options = at_console_detect(file, true);
    assert_true(options.terminal && options.color && options.quiet);
    assert_int_equal(options.width, 123);
    setenv("NO_COLOR", "1", 1);
    assert_false(at_console_detect(file, false).color);
    assert_true(at_console_detect(file, false).terminal);
    setenv("NO_COLOR", "", 1); /* empty counts as not set */
    assert_true(at_console_detect(file, false).color);
    setenv("TERM", "dumb", 1);
    assert_false(at_console_detect(file, false).terminal);
    setenv("COLUMNS", "40", 1);
    assert_int_equal(at_console_detect(file, false).width, 40);
    unsetenv("COLUMNS");
    fclose(file);
    close(hub);
    file = tmpfile();
    assert_non_null(file);
    setenv("TERM", "xterm", 1);
    options = at_console_detect(file, false);
    assert_false(options.terminal || options.color);
    assert_int_equal(options.width, 80);
    fclose(file);
}

static void the_locale_selects_utf8_or_ascii(void **state)
{
    (void)state;
    static const struct {
        const char *all, *ctype, *lang;
        bool        ascii;
    } cases[] = {{"", "", "", true},
                 {"", "", "C", true},
                 {"", "", "en_GB.UTF-8", false},
                 {"", "", "C.utf8", false},
                 {"", "C", "en_GB.UTF-8", true},
                 {"C", "en_GB.UTF-8", "en_GB.UTF-8", true},
                 {"de_DE.utf-8@euro", "C", "", false},
                 {"", "", "de_DE.ISO-8859-1", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setenv("LC_ALL", cases[i].all, 1);
        setenv("LC_CTYPE", cases[i].ctype, 1);
        setenv("LANG", cases[i].lang, 1);
        assert_int_equal(at_console_detect(stderr, false).ascii, cases[i].ascii);
    }
}

static int forget_sizes(void **state)
{
    (void)state;
    return unsetenv("COLUMNS") || unsetenv("LINES");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_lines_are_printed_every_two_seconds),
        cmocka_unit_test(plain_lines_become_rarer_in_a_long_run),
        cmocka_unit_test(progress_is_measured_toward_the_nearest_limit),
        cmocka_unit_test(a_resumed_run_does_not_count_earlier_progress),
        cmocka_unit_test(the_time_of_a_resumed_run_includes_that_before),
        cmocka_unit_test(a_resumed_run_begins_where_it_was),
        cmocka_unit_test(the_last_line_of_a_reached_target_says_so),
        cmocka_unit_test(sixty_columns_have_room_for_the_bar_and_the_time_left),
        cmocka_unit_test(quiet_prints_only_losses_and_warnings),
        cmocka_unit_test(waits_are_printed_in_real_time_only),
        cmocka_unit_test(many_losses_are_summarized),
        cmocka_unit_test(the_block_is_redrawn_in_place_and_messages_stay_above),
        cmocka_unit_test(no_line_is_wider_than_the_terminal),
        cmocka_unit_test(workers_have_a_bar_each_while_they_fit),
        cmocka_unit_test(too_many_workers_are_drawn_in_groups),
        cmocka_unit_test(without_utf8_bars_are_ascii),
        cmocka_unit_test(the_block_is_less_tall_than_the_window),
        cmocka_unit_test(a_narrower_window_wraps_lines),
        cmocka_unit_test(the_block_is_redrawn_at_most_ten_times_per_second),
        cmocka_unit_test(a_separate_clock_paces_a_simulation),
        cmocka_unit_test(long_messages_break_at_spaces),
        cmocka_unit_test(names_and_messages_cannot_control_the_terminal),
        cmocka_unit_test(the_terminal_is_detected),
        cmocka_unit_test(the_locale_selects_utf8_or_ascii),
    };
    return cmocka_run_group_tests(tests, forget_sizes, NULL);
}
