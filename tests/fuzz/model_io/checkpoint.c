/* Fuzz target: any bytes as a checkpoint whose checksum is right, so that it does not keep
 * mutations from what reads the rest. What is accepted must be usable: the state of the hub as a
 * snapshot, the totals as those of a run that goes on.
 *
 * The input is the header without the state of the run, the state, and the numbers, with zero bytes
 * between them. The target writes the size of the header and puts the state into it, because
 * mutations would hardly keep the size right, nor quotes within quotes. */
#include "model_io/checkpoint.h"

#include <string.h>

#include "../folder.h"
#include "base/file.h"
#include "model_io/safetensors.h"
#include "record/tally.h"

enum { WORKERS = 2, FILE_MAX = 1 << 16 };

/* One more step after the totals of the checkpoint. */
static void go_on(at_tally *tally, at_sink *sink, at_ns at)
{
    at_action order = {.kind = AT_ACT_SEND, .worker = 1};
    at_action apply = {.kind = AT_ACT_APPLY};
    apply.as.apply.step = 1;
    apply.as.apply.samples = 8;
    apply.as.apply.loss_sum = 8;
    sink->put(sink->self, &(at_record){.kind = AT_REC_ACTION, .action = &order, .at = at});
    sink->put(sink->self, &(at_record){.kind = AT_REC_ACTION, .action = &apply, .at = at + 5});
    assert(at_tally_steps(tally).count == tally->step_count);
    assert(at_tally_seconds(tally) >= 0);
    at_tally_useful(tally);
    at_tally_progressive(tally);
    json_t *again = at_tally_json(tally, at + 10);
    assert(again);
    json_decref(again);
}

static void use(const at_checkpoint *checkpoint, const at_plan *plan)
{
    at_run_info info = {.plan = plan, .resume = checkpoint->snapshot};
    at_sink     sink;
    at_fail     fail = {0};
    at_tally   *tally = at_tally_new(&info, &sink);
    assert(tally);
    assert(checkpoint->snapshot && checkpoint->state);
    at_err err = at_tally_resume(tally, json_object_get(checkpoint->state, "tally"), &fail);
    assert(!err || fail.text[0]);
    if (!err) go_on(tally, &sink, checkpoint->snapshot->clock);
    at_tally_free(tally);
    uint32_t workers, vectors;
    at_checkpoint_own_count(checkpoint, &workers, &vectors);
    static const at_tensor weight = {.name = "dense1.weight", .dims = 2, .shape = {3, 6}};
    float                  numbers[3 * 6];
    err = at_safetensors_read(checkpoint->path, &weight, 1, numbers, &fail);
    assert(!err || fail.text[0]);
}

/* Up to the next zero byte, which is skipped. */
static size_t take(const uint8_t **data, size_t *size)
{
    const uint8_t *end = *size > 0 ? memchr(*data, 0, *size) : NULL;
    size_t         part = end ? (size_t)(end - *data) : *size;
    *data += end ? part + 1 : part;
    *size -= end ? part + 1 : part;
    return part;
}

/* The header with the state in it; to be freed. If it is not JSON, it stays as it is. */
static char *header_of(const char *header, size_t header_size, const char *state, size_t size)
{
    json_t *object = json_loadb(header, header_size, 0, NULL);
    json_object_set_new(json_object_get(object, "__metadata__"), "checkpoint",
                        json_stringn(state, size));
    char *text = object ? json_dumps(object, JSON_COMPACT) : strndup(header, header_size);
    assert(text);
    json_decref(object);
    return text;
}

static void write_checkpoint(const uint8_t *data, size_t size)
{
    static uint8_t file[FILE_MAX];
    unsigned char  seal[32];
    const char    *header = (const char *)data;
    size_t         header_size = take(&data, &size);
    const char    *state = (const char *)data;
    size_t         state_size = take(&data, &size);
    char          *text = header_of(header, header_size, state, state_size);
    uint64_t       length = strlen(text);
    if (8 + length + size <= sizeof file) {
        memcpy(file, &length, 8);
        memcpy(file + 8, text, length);
        memcpy(file + 8 + length, data, size);
        at_file_digest_bytes(file, 8 + length + size, seal);
        fuzz_file("checkpoint/step-000000000020.safetensors", file, 8 + length + size, seal,
                  sizeof seal);
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    at_plan_options options = {
        .strategy = "amb", .workers = WORKERS, .batch = 8, .limits = {.steps = UINT64_MAX}};
    at_plan       plan;
    at_fail       fail = {0};
    at_checkpoint checkpoint;
    at_err        err = at_plan_resolve(&options, &plan, &fail);
    assert(!err);
    char folder[128];
    snprintf(folder, sizeof folder, "%s/checkpoint", fuzz_folder());
    mkdir(folder, 0700);
    write_checkpoint(data, size);
    if (at_checkpoint_open(fuzz_folder(), &checkpoint, &fail))
        assert(fail.text[0]);
    else
        use(&checkpoint, &plan);
    at_checkpoint_close(&checkpoint);
    return 0;
}
