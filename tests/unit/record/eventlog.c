#include "record/log/eventlog.h"

#include <fcntl.h>
#include <math.h>

#include "base/crc32c.h"
#include "base/rng.h"
#include "record/log/codec.h"
#include "record/runinfo.h"
#include "record/sinks/sinks.h"
#include "record/tally.h"
#include "script.h"

enum { PIECES = 5 };

/* A record with everything it points to. */
typedef struct full {
    at_record record;
    at_event  event;
    at_action action;
    at_usage  usage;
    at_piece  pieces[PIECES];
    char      text[40];

    at_link_stats link;
} full;

/* Numbers of every size, extremes included. */
static uint64_t any64(at_rng *rng)
{
    static const uint64_t extremes[] = {0, 1, UINT64_MAX, INT64_MAX, (uint64_t)INT64_MAX + 1};
    if (at_rng_below(rng, 8) == 0) return extremes[at_rng_below(rng, 5)];
    return at_rng_next(rng) >> at_rng_below(rng, 64);
}

static uint32_t any32(at_rng *rng)
{
    return (uint32_t)any64(rng);
}

static bool any_flag(at_rng *rng)
{
    return at_rng_below(rng, 2);
}

static double any_real(at_rng *rng)
{
    static const double extremes[] = {0, -0.0, 1, INFINITY, -INFINITY, 1e-320};
    return any_flag(rng) ? at_rng_normal(rng) : extremes[at_rng_below(rng, 6)];
}

static at_node any_worker(at_rng *rng)
{
    return (at_node)at_rng_below(rng, any_flag(rng) ? 4 : AT_WORKERS_MAX + 1);
}

static at_work any_work(at_rng *rng)
{
    at_work work;
    memset(&work, 0, sizeof work);
    work.round = any64(rng);
    work.version = any64(rng);
    work.samples = any32(rng);
    work.abandoned = any_flag(rng);
    work.capped = any_flag(rng);
    work.overslept = any_flag(rng);
    work.nonfinite = any_flag(rng) ? 1 + at_rng_below(rng, 1u << 30) : 0;
    work.loss_sum = any_real(rng);
    work.compute_ns = (at_ns)any64(rng);
    work.sleep_ns = (at_ns)any64(rng);
    work.overshoot_ns = (at_ns)any64(rng);
    work.idle_ns = (at_ns)any64(rng);
    work.install_ns = (at_ns)any64(rng);
    work.send_ns = (at_ns)any64(rng);
    return work;
}

static at_order any_order(at_rng *rng)
{
    at_order order;
    memset(&order, 0, sizeof order);
    order.round = any64(rng);
    order.version = any64(rng);
    order.position = any64(rng);
    order.time_limit = (at_ns)any64(rng);
    order.samples_max = any32(rng);
    order.again = any_flag(rng);
    order.leave = any_flag(rng);
    return order;
}

static at_piece any_piece(at_rng *rng)
{
    at_piece piece;
    memset(&piece, 0, sizeof piece);
    piece.worker = any_worker(rng);
    piece.slot = any32(rng);
    piece.samples = any32(rng);
    piece.incarnation = any32(rng);
    piece.sequence = any64(rng);
    piece.version = any64(rng);
    piece.weight = any_real(rng);
    return piece;
}

static void fill_event(full *it, at_rng *rng)
{
    at_event *event = &it->event;
    event->kind = (at_event_kind)at_rng_below(rng, AT_EV_STOP + 1);
    event->worker = any_worker(rng);
    event->now = (at_ns)any64(rng);
    switch (event->kind) {
    case AT_EV_JOINED:
        event->as.joined.incarnation = any32(rng);
        it->record.pid = (int64_t)any64(rng);
        break;
    case AT_EV_LOST:
        event->as.lost.drawn = any64(rng);
        event->as.lost.returns = any_flag(rng);
        it->record.text = it->text;
        break;
    case AT_EV_MESSAGE:
        event->as.report.work = any_work(rng);
        event->as.report.incarnation = any32(rng);
        event->as.report.slot = any32(rng);
        event->as.report.sequence = any64(rng);
        break;
    case AT_EV_EVALUATED:
        event->as.evaluated.step = any64(rng);
        event->as.evaluated.at = (at_ns)any64(rng);
        for (int i = 0; i < AT_METRIC_COUNT; i++) event->as.evaluated.value[i] = any_real(rng);
        it->record.count = any64(rng);
        it->record.final = any_flag(rng);
        break;
    case AT_EV_TIMER: event->as.timer = (at_timer)at_rng_below(rng, AT_TIMER_COUNT); break;
    case AT_EV_APPLIED: /* a squared norm has no sign */
        event->as.applied.norm2_step = fabs(any_real(rng));
        event->as.applied.norm2_piece = fabs(any_real(rng));
        break;
    case AT_EV_START:
    case AT_EV_STOP: break;
    }
}

static void fill_apply(full *it, at_rng *rng)
{
    at_action *action = &it->action;
    action->as.apply.step = any64(rng);
    action->as.apply.samples = any64(rng);
    action->as.apply.samples_used = any64(rng);
    action->as.apply.count = (uint32_t)at_rng_below(rng, PIECES + 1);
    action->as.apply.pieces = it->pieces;
    action->as.apply.folded = any_flag(rng);
    action->as.apply.loss_sum = any_real(rng);
    action->as.apply.wait_ns = (at_ns)any64(rng);
    action->as.apply.lr_factor = any_real(rng);
    for (uint32_t i = 0; i < PIECES; i++) it->pieces[i] = any_piece(rng);
    it->record.lr = any_real(rng);
}

static void fill_action(full *it, at_rng *rng)
{
    at_action *action = &it->action;
    action->kind = (at_action_kind)at_rng_below(rng, AT_ACT_FINISH + 1);
    action->worker = any_worker(rng);
    switch (action->kind) {
    case AT_ACT_SEND: action->as.order = any_order(rng); break;
    case AT_ACT_TIMER:
        action->as.timer.timer = (at_timer)at_rng_below(rng, AT_TIMER_COUNT);
        action->as.timer.at = (at_ns)any64(rng);
        break;
    case AT_ACT_ADD: action->as.add = any_piece(rng); break;
    case AT_ACT_APPLY: fill_apply(it, rng); break;
    case AT_ACT_DROP:
        action->as.drop.sequence = any64(rng);
        action->as.drop.samples = any64(rng);
        action->as.drop.version = any64(rng);
        action->as.drop.why = (at_drop)at_rng_below(rng, AT_DROP_COUNT);
        break;
    case AT_ACT_EVALUATE: action->as.evaluate.step = any64(rng); break;
    case AT_ACT_SAVE:
        action->as.save.step = any64(rng);
        action->as.save.last = any64(rng) % 2;
        break;
    case AT_ACT_NOTICE:
        action->as.notice.waited = (at_ns)any64(rng);
        action->as.notice.step = any64(rng);
        break;
    case AT_ACT_FINISH: action->as.finish.why = (at_end)at_rng_below(rng, AT_END_COUNT); break;
    case AT_ACT_EVICT: break;
    }
}

static void fill_usage(full *it, at_rng *rng)
{
    it->record.usage = &it->usage;
    it->record.node = (at_node)at_rng_below(rng, AT_NODE_EVALUATOR + 1);
    it->usage = (at_usage){.pid = (int64_t)any64(rng),
                           .user_ns = (at_ns)any64(rng),
                           .system_ns = (at_ns)any64(rng),
                           .rss_bytes = any_flag(rng) ? any64(rng) : AT_USAGE_UNKNOWN,
                           .shared_bytes = any_flag(rng) ? any64(rng) : AT_USAGE_UNKNOWN,
                           .peak_bytes = any_flag(rng) ? any64(rng) : AT_USAGE_UNKNOWN,
                           .read_bytes = any_flag(rng) ? any64(rng) : AT_USAGE_UNKNOWN,
                           .write_bytes = any_flag(rng) ? any64(rng) : AT_USAGE_UNKNOWN,
                           .net_in_bytes = any_flag(rng) ? any64(rng) : AT_USAGE_UNKNOWN,
                           .net_out_bytes = any_flag(rng) ? any64(rng) : AT_USAGE_UNKNOWN,
                           .loopback_bytes = any_flag(rng) ? any64(rng) : AT_USAGE_UNKNOWN};
}

static void fill_link(full *it, at_rng *rng)
{
    it->record.link = &it->link;
    it->record.node = (at_node)at_rng_below(rng, AT_WORKERS_MAX) + 1;
    it->link = (at_link_stats){.host = "alpha",
                               .address = "[fe80::7%eth0]:7000",
                               .round_trip_ns = (at_ns)any64(rng),
                               .round_trip_ns_min = (at_ns)any64(rng),
                               .sent_bytes = any64(rng),
                               .received_bytes = any64(rng),
                               .resent_packets = any64(rng)};
    it->link.host[at_rng_below(rng, 5)] = '\0';
}

/* From a seed, so that writing and comparing see the same records without storing them. */
static void make_full(full *it, at_rng *rng)
{
    memset(it, 0, sizeof *it);
    it->record.kind = (at_record_kind)at_rng_below(rng, AT_REC_LINK + 1);
    it->record.at = (at_ns)any64(rng);
    it->record.version = any64(rng);
    size_t size = at_rng_below(rng, sizeof it->text);
    for (size_t i = 0; i < size; i++) it->text[i] = (char)(1 + at_rng_below(rng, 255));
    if (it->record.kind == AT_REC_EVENT) it->record.event = &it->event;
    if (it->record.kind == AT_REC_EVENT) fill_event(it, rng);
    if (it->record.kind == AT_REC_ACTION) it->record.action = &it->action;
    if (it->record.kind == AT_REC_ACTION) fill_action(it, rng);
    if (it->record.kind == AT_REC_TEXT) it->record.text = it->text;
    if (it->record.kind == AT_REC_USAGE) fill_usage(it, rng);
    if (it->record.kind == AT_REC_LINK) fill_link(it, rng);
}

static void check_pieces(const at_action *expected, const at_action *got)
{
    uint32_t count = expected->as.apply.count;
    for (uint32_t i = 0; i < count; i++) {
        const at_piece *a = &expected->as.apply.pieces[i], *b = &got->as.apply.pieces[i];
        assert_memory_equal(a, b, sizeof *a);
    }
}

static void check_link(const at_link_stats *a, const at_link_stats *b)
{
    assert_string_equal(a->host, b->host);
    assert_string_equal(a->address, b->address);
    assert_int_equal(a->round_trip_ns, b->round_trip_ns);
    assert_int_equal(a->round_trip_ns_min, b->round_trip_ns_min);
    assert_int_equal(a->sent_bytes, b->sent_bytes);
    assert_int_equal(a->received_bytes, b->received_bytes);
    assert_int_equal(a->resent_packets, b->resent_packets);
}

static void check_same(const full *expected, const at_record *got)
{
    const at_record *record = &expected->record;
    assert_int_equal(record->kind, got->kind);
    assert_int_equal(record->at, got->at);
    assert_int_equal(record->version, got->version);
    assert_int_equal(record->pid, got->pid);
    assert_int_equal(record->count, got->count);
    assert_int_equal(record->final, got->final);
    assert_memory_equal(&record->lr, &got->lr, sizeof got->lr);
    if (record->text) assert_string_equal(record->text, got->text);
    assert_int_equal(record->node, got->node);
    if (record->usage) assert_memory_equal(record->usage, got->usage, sizeof *got->usage);
    if (record->link) check_link(record->link, got->link);
    if (record->event) assert_memory_equal(record->event, got->event, sizeof *got->event);
    if (!record->action) return;
    at_action action = *got->action;
    if (action.kind == AT_ACT_APPLY) {
        check_pieces(record->action, got->action);
        action.as.apply.pieces = expected->pieces;
    }
    assert_memory_equal(record->action, &action, sizeof action);
}

/* Writes a log of `steps` steps by two workers, with losses, drops, evaluations and evictions. */
static void write_log(script *run, int steps)
{
    at_sink sink;
    assert_int_equal(at_sink_eventlog(&run->info, &sink, NULL), AT_OK);
    at_recorder_add(&run->recorder, sink);
    run->version = 0;
    run->at = 0;
    script_start(run);
    for (int i = 0; i < steps; i++) {
        at_work  work = {.round = (uint64_t)i, .version = run->version, .samples = 32};
        at_piece piece = {.worker = 1, .samples = 32, .incarnation = 1, .version = run->version};
        work.compute_ns = AT_MS(7);
        work.loss_sum = 0.5;
        piece.sequence = (uint64_t)i + 1;
        script_join(run, 2, 4711, (uint32_t)i + 1);
        if (i == 0) script_join(run, 1, 4710, 1);
        script_order(run, 1, AT_MS(50));
        run->at += AT_MS(50);
        script_report(run, 1, 1, (uint64_t)i + 1, work);
        script_action(run, (at_action){.kind = AT_ACT_ADD, .as.add = piece}, (at_record){0});
        script_apply(run, &piece, 1, 0.5, 0.1);
        script_lost(run, 2, "killed by signal 9", true);
        script_drop(run, 2, 12, AT_DROP_LOST);
        script_evaluated(run, run->version, AT_MS(3), 0.5, 0.25);
        script_action(run, (at_action){.kind = AT_ACT_EVICT, .worker = 2}, (at_record){0});
        at_record text = {.kind = AT_REC_TEXT, .text = "a text without a time"};
        at_recorder_put(&run->recorder, &text);
    }
    script_close(run);
}

static const char *log_path(const script *run, const char *name)
{
    static char path[400];
    snprintf(path, sizeof path, "%s/%s", run->folder, name);
    return path;
}

static void every_record_survives_a_round_trip(void **state)
{
    (void)state;
    enum { COUNT = 400 };
    script run;
    script_begin(&run, 2);
    for (uint64_t seed = 1; seed <= 50; seed++) {
        at_record record;
        full      it;
        at_codec *writer = at_codec_new(true), *reader = at_codec_new(false);
        at_rng    rng = at_rng_stream(seed, 0, AT_RNG_PURPOSE_TEST, 0);
        for (int i = 0; i < COUNT; i++) {
            make_full(&it, &rng);
            assert_true(at_codec_write(writer, &it.record));
            size_t         size = writer->wire.next;
            unsigned char *bytes = malloc(size); /* sanitizers find a byte too many */
            memcpy(bytes, writer->wire.bytes, size);
            assert_true(at_codec_read(reader, bytes, size, &record));
            check_same(&it, &record);
            free(bytes);
        }
        at_codec_free(writer);
        at_codec_free(reader);
    }
    script_end(&run);
}

/* Reads and tallies all records, as a report would; returns their number, or -1 for a malformed
 * log. */
static int count_records(const char *path, bool *truncated, at_fail *fail)
{
    const at_plan     plan = {.strategy = &script_strategy, .workers = 2, .workers_max = 2};
    const at_run_info info = {.plan = &plan};
    at_eventlog      *log;
    const at_record  *record;
    at_sink           sink;
    *truncated = false;
    if (at_eventlog_open(path, &log, fail)) return -1;
    at_tally *tally = at_tally_new(&info, &sink);
    at_err    err;
    int       count = 0;
    while (!(err = at_eventlog_next(log, &record, fail)) && record) {
        if (at_run_info_workers(at_eventlog_info(log)) <= 2) sink.put(sink.self, record);
        count++;
    }
    *truncated = at_eventlog_truncated(log);
    at_eventlog_close(log);
    at_tally_free(tally);
    return err ? -1 : count;
}

static void replace_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static unsigned char *read_bytes(const char *path, size_t *size)
{
    unsigned char *bytes;
    assert_int_equal(at_file_read(path, 1 << 24, &bytes, size, NULL), AT_OK);
    return bytes;
}

static void a_truncated_log_gives_the_records_before_the_cut(void **state)
{
    (void)state;
    enum { STEPS = 3, COUNT = 2 + 10 * STEPS };
    script run;
    script_begin(&run, 2);
    write_log(&run, STEPS);
    size_t         size;
    unsigned char *bytes = read_bytes(log_path(&run, "events.bin"), &size);
    int            last = 0, whole = 0;
    for (size_t cut = 0; cut <= size; cut++) {
        bool        truncated;
        const char *path = log_path(&run, "cut.bin");
        replace_file(path, bytes, cut);
        int count = count_records(path, &truncated, NULL);
        if (count < 0) { /* only within the header */
            assert_int_equal(last, 0);
            continue;
        }
        assert_in_range(count, last, last + 1);
        if (count > last) assert_false(truncated);
        whole += !truncated;
        last = count;
    }
    assert_int_equal(last, COUNT);
    assert_int_equal(whole, COUNT + 1); /* all other lengths end within a record */
    free(bytes);
    script_end(&run);
}

/* Reads until there is no more; returns the number of records. */
static int read_rest(at_eventlog *log, at_ns *last)
{
    const at_record *record;
    int              count = 0;
    for (;;) {
        assert_int_equal(at_eventlog_next(log, &record, NULL), AT_OK);
        if (!record) return count;
        if (record->kind != AT_REC_TEXT) *last = record->at;
        count++;
    }
}

static void a_growing_log_gives_every_record_once(void **state)
{
    (void)state;
    enum { STEPS = 3, COUNT = 2 + 10 * STEPS };
    script run;
    script_begin(&run, 2);
    write_log(&run, STEPS);
    size_t         size, head;
    unsigned char *bytes = read_bytes(log_path(&run, "events.bin"), &size);
    at_eventlog   *log = NULL;
    const char    *path = log_path(&run, "growing.bin");
    for (head = 1; !log; head++) {
        replace_file(path, bytes, head);
        at_eventlog_open(path, &log, NULL);
    }
    FILE *file = fopen(path, "ab");
    at_ns last = 0;
    int   count = read_rest(log, &last);
    for (size_t i = head - 1; i < size; i++) {
        putc(bytes[i], file);
        fflush(file);
        int more = read_rest(log, &last);
        assert_in_range(more, 0, 1);
        if (more) assert_false(at_eventlog_truncated(log));
        count += more;
    }
    assert_int_equal(count, COUNT);
    assert_int_equal(last, STEPS * AT_MS(50));
    assert_false(at_eventlog_truncated(log));
    fclose(file);
    at_eventlog_close(log);
    free(bytes);
    script_end(&run);
}

/* A checksum never lets a changed record pass; what came before it is kept. */
static void a_flipped_bit_ends_the_log_there(void **state)
{
    (void)state;
    enum { STEPS = 2, COUNT = 2 + 10 * STEPS };
    script run;
    script_begin(&run, 2);
    write_log(&run, STEPS);
    size_t         size;
    unsigned char *bytes = read_bytes(log_path(&run, "events.bin"), &size);
    const char    *path = log_path(&run, "flipped.bin");
    int            least = 0;
    for (size_t i = 0; i < 8 * size; i++) {
        bool    truncated;
        at_fail fail = {0};
        bytes[i / 8] ^= (unsigned char)(1 << i % 8);
        replace_file(path, bytes, size);
        int count = count_records(path, &truncated, &fail);
        bytes[i / 8] ^= (unsigned char)(1 << i % 8);
        if (count < 0) { /* only within the head */
            assert_true(fail.text[0]);
            assert_int_equal(least, 0);
            continue;
        }
        assert_true(truncated);
        assert_in_range(count, least, COUNT - 1);
        least = count;
    }
    assert_int_equal(least, COUNT - 1);
    free(bytes);
    script_end(&run);
}

/* After a power cut a file may have its size but not its bytes. */
static void zeros_at_the_end_are_left_out(void **state)
{
    (void)state;
    script run;
    bool   truncated;
    script_begin(&run, 2);
    write_log(&run, 1);
    size_t         size;
    at_fail        fail = {0};
    unsigned char *bytes = read_bytes(log_path(&run, "events.bin"), &size);
    bytes = realloc(bytes, size + 5000);
    assert_non_null(bytes);
    memset(bytes + size, 0, 5000);
    const char *path = log_path(&run, "zeros.bin");
    replace_file(path, bytes, size + 5000);
    assert_int_equal(count_records(path, &truncated, &fail), 12);
    assert_true(truncated);
    memset(bytes, 0, size);
    replace_file(path, bytes, size);
    assert_int_equal(count_records(path, &truncated, &fail), -1);
    assert_int_equal(fail.err, AT_ERR_MISSING);
    assert_non_null(strstr(fail.text, "no complete head"));
    free(bytes);
    script_end(&run);
}

static void other_files_and_versions_are_refused(void **state)
{
    (void)state;
    script run;
    bool   truncated;
    script_begin(&run, 2);
    write_log(&run, 0);
    size_t         size;
    at_fail        fail = {0};
    unsigned char *bytes = read_bytes(log_path(&run, "events.bin"), &size);
    const char    *path = log_path(&run, "bad.bin");
    bytes[4] = 99;
    replace_file(path, bytes, size);
    assert_int_equal(count_records(path, &truncated, &fail), -1);
    assert_int_equal(fail.err, AT_ERR_FORMAT);
    assert_non_null(strstr(fail.text, "newer version of anytime; its event log has format 99"));
    bytes[4] = 3;
    replace_file(path, bytes, size);
    assert_int_equal(count_records(path, &truncated, &fail), -1);
    assert_int_equal(fail.err, AT_ERR_FORMAT);
    assert_non_null(strstr(fail.text, "written by anytime 0.1"));
    replace_file(path, "hello", 5);
    assert_int_equal(count_records(path, &truncated, &fail), -1);
    assert_non_null(strstr(fail.text, "not an event log"));
    assert_int_equal(count_records(log_path(&run, "none.bin"), &truncated, &fail), -1);
    assert_int_equal(fail.err, AT_ERR_MISSING);
    free(bytes);
    script_end(&run);
}

/* Appends a record with a correct checksum. */
static int count_with(const script *run, const void *record, size_t size, at_fail *fail)
{
    unsigned char frame[5] = {(unsigned char)size};
    uint32_t      crc = at_crc32c(record, size);
    bool          truncated;
    const char   *path = log_path(run, "events.bin");
    for (int i = 0; i < 4; i++) frame[1 + i] = (unsigned char)(crc >> (8 * i));
    FILE *file = fopen(path, "ab");
    assert_non_null(file);
    assert_int_equal(fwrite(frame, 1, sizeof frame, file), sizeof frame);
    assert_int_equal(fwrite(record, 1, size, file), size);
    fclose(file);
    return count_records(path, &truncated, fail);
}

static void malformed_records_are_refused_with_their_position(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t      size;
        const char *complaint;
    } cases[] = {
        {"?", 1, "unknown kind of record"},
        {"S\0\0", 3, "the record is too short"},
        {"S\0\0\0\0\0", 6, "the record is too long"},
        {"S\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12, "exceeds 64 bits"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        script  run;
        at_fail fail = {0};
        char    expected[120];
        size_t  size;
        script_begin(&run, 2);
        write_log(&run, 0);
        free(read_bytes(log_path(&run, "events.bin"), &size));
        assert_int_equal(count_with(&run, cases[i].bytes, cases[i].size, &fail), -1);
        assert_int_equal(fail.err, AT_ERR_FORMAT);
        snprintf(expected, sizeof expected, "invalid record at byte %zu: ", size);
        assert_non_null(strstr(fail.text, expected));
        assert_non_null(strstr(fail.text, cases[i].complaint));
        script_end(&run);
    }
}

/* A run killed before its head was written leaves a log that is written anew. */
static void a_log_with_a_torn_head_is_replaced(void **state)
{
    (void)state;
    for (size_t keep = 0; keep <= 100; keep += 10) {
        script run;
        bool   truncated;
        script_begin(&run, 2);
        write_log(&run, 1);
        write_log(&run, 1);
        assert_int_equal(truncate(log_path(&run, "events-2.bin"), (off_t)keep), 0);
        write_log(&run, 2);
        assert_int_equal(count_records(log_path(&run, "events.bin"), &truncated, NULL), 12);
        assert_int_equal(count_records(log_path(&run, "events-2.bin"), &truncated, NULL), 22);
        assert_int_not_equal(access(log_path(&run, "events-3.bin"), F_OK), 0);
        script_end(&run);
    }
}

/* What sinks assert must not be read from a file. */
static void records_that_no_run_produces_are_refused(void **state)
{
    (void)state;
    static const struct {
        at_action   action;
        const char *complaint;
    } cases[] = {
        {{.kind = AT_ACT_DROP, .worker = 3}, "no such worker"},
        {{.kind = AT_ACT_SEND, .worker = 0}, "no such worker"},
        {{.kind = AT_ACT_TIMER, .as.timer = {.at = INT64_MIN}}, "time out of range"},
        {{.kind = AT_ACT_ADD, .as.add = {.worker = 9}}, "no such worker"},
        {{.kind = AT_ACT_APPLY}, "step out of order"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        script  run;
        bool    truncated;
        at_fail fail = {0};
        at_sink sink;
        script_begin(&run, 2);
        assert_int_equal(at_sink_eventlog(&run.info, &sink, NULL), AT_OK);
        at_recorder_add(&run.recorder, sink);
        script_action(&run, cases[i].action, (at_record){0});
        script_close(&run);
        assert_int_equal(count_records(log_path(&run, "events.bin"), &truncated, &fail), -1);
        assert_int_equal(fail.err, AT_ERR_FORMAT);
        assert_non_null(strstr(fail.text, cases[i].complaint));
        script_end(&run);
    }
}

static void a_resumed_run_writes_a_new_log(void **state)
{
    (void)state;
    script run;
    bool   truncated;
    script_begin(&run, 2);
    write_log(&run, 1);
    write_log(&run, 2);
    write_log(&run, 3);
    assert_int_equal(count_records(log_path(&run, "events.bin"), &truncated, NULL), 12);
    assert_int_equal(count_records(log_path(&run, "events-2.bin"), &truncated, NULL), 22);
    assert_int_equal(count_records(log_path(&run, "events-3.bin"), &truncated, NULL), 32);
    script_end(&run);
}

static void a_full_disk_is_reported_at_close(void **state)
{
    (void)state;
    script  run;
    at_fail fail = {0};
    at_sink sink;
    script_begin(&run, 2);
    assert_int_equal(symlink("/dev/full", log_path(&run, "events.bin")), 0);
    assert_int_equal(at_sink_eventlog(&run.info, &sink, &fail), AT_OK);
    at_recorder_add(&run.recorder, sink);
    script_start(&run);
    assert_int_equal(at_recorder_close(&run.recorder, &fail), AT_ERR_IO);
    assert_non_null(strstr(fail.text, "events.bin: cannot write: No space left"));
    script_end(&run);
}

/* Synchronous steps of four workers: what a long run consists of. */
static void a_step_takes_few_bytes(void **state)
{
    (void)state;
    enum { STEPS = 1000, WORKERS = 4 };
    script  run;
    at_sink sink;
    script_begin(&run, WORKERS);
    assert_int_equal(at_sink_eventlog(&run.info, &sink, NULL), AT_OK);
    at_recorder_add(&run.recorder, sink);
    for (uint64_t step = 0; step < STEPS; step++) {
        at_piece pieces[WORKERS];
        for (at_node worker = 1; worker <= WORKERS; worker++) script_order(&run, worker, AT_MS(50));
        for (at_node worker = 1; worker <= WORKERS; worker++) {
            run.at += AT_US(150.123);
            script_report(&run, worker, 1, step + 1,
                          (at_work){.round = step,
                                    .version = step,
                                    .samples = 32,
                                    .loss_sum = 0.1,
                                    .compute_ns = AT_US(140),
                                    .idle_ns = AT_US(9),
                                    .install_ns = 900,
                                    .send_ns = 800});
            pieces[worker - 1] = (at_piece){.worker = worker,
                                            .samples = 32,
                                            .incarnation = 1,
                                            .sequence = step + 1,
                                            .version = step,
                                            .weight = 1};
        }
        script_apply(&run, pieces, WORKERS, 3, 0.1);
    }
    script_close(&run);
    size_t         size;
    unsigned char *bytes = read_bytes(log_path(&run, "events.bin"), &size);
    assert_in_range(size / STEPS, 1, 320);
    free(bytes);
    script_end(&run);
}

static void the_plan_is_read_back_from_the_header(void **state)
{
    (void)state;
    at_plan         plan = {0}, again, then;
    at_plan_options options = {.strategy = "amb",
                               .time_limit = "50ms",
                               .workers = 7,
                               .workers_max = 9,
                               .workers_min = 2,
                               .join_timeout = AT_SEC(5),
                               .batch = 64,
                               .micro_batch = 16,
                               .lease = AT_SEC(9)};
    options.limits = (at_limits){.steps = 10, .samples = 123, .time = AT_SEC(5), .targets = 2};
    options.limits.target[0] = (at_target){.metric = AT_METRIC_ACCURACY, .value = 0.9};
    options.limits.target[1] = (at_target){.metric = AT_METRIC_LOSS, .value = 0.1 + 0.2};
    at_fail fail = {0};
    if (at_plan_resolve(&options, &plan, &fail)) fail_msg("%s", fail.text);

    script run;
    script_begin(&run, 7);
    run.info.plan = &plan;
    run.info.command = "anytime train --run \"\xff\"";
    run.info.seed = UINT64_MAX;
    write_log(&run, 3);
    at_eventlog *log;
    assert_int_equal(at_eventlog_open(log_path(&run, "events.bin"), &log, &fail), AT_OK);
    const char *info = at_eventlog_info(log);
    assert_non_null(strstr(info, "\"model\":\"softmax\""));
    memset(&again, 0, sizeof again);
    if (at_run_info_plan(info, &again, &then, &fail)) fail_msg("%s", fail.text);
    assert_ptr_equal(again.strategy, plan.strategy);
    assert_ptr_equal(again.work, plan.work);
    assert_ptr_equal(again.gather, plan.gather);
    assert_ptr_equal(again.release, plan.release);
    assert_ptr_equal(again.newer, plan.newer);
    assert_ptr_equal(again.stale, plan.stale);
    assert_ptr_equal(again.size, plan.size);
    assert_ptr_equal(again.mix, plan.mix);
    assert_ptr_equal(again.outer, plan.outer);
    assert_int_equal(again.workers, 7);
    assert_int_equal(again.time_limit, plan.time_limit);
    assert_int_equal(again.cap, plan.cap);
    assert_int_equal(again.lease, AT_SEC(9));
    assert_int_equal(again.limits.samples, 123);
    assert_int_equal(again.limits.targets, 2);
    assert_true(again.limits.target[1].value == 0.1 + 0.2);
    at_eventlog_close(log);
    script_end(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_record_survives_a_round_trip),
        cmocka_unit_test(a_truncated_log_gives_the_records_before_the_cut),
        cmocka_unit_test(a_growing_log_gives_every_record_once),
        cmocka_unit_test(a_flipped_bit_ends_the_log_there),
        cmocka_unit_test(zeros_at_the_end_are_left_out),
        cmocka_unit_test(other_files_and_versions_are_refused),
        cmocka_unit_test(malformed_records_are_refused_with_their_position),
        cmocka_unit_test(a_log_with_a_torn_head_is_replaced),
        cmocka_unit_test(records_that_no_run_produces_are_refused),
        cmocka_unit_test(a_resumed_run_writes_a_new_log),
        cmocka_unit_test(a_full_disk_is_reported_at_close),
        cmocka_unit_test(a_step_takes_few_bytes),
        cmocka_unit_test(the_plan_is_read_back_from_the_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
