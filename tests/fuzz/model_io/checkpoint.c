/* Fuzz target: any bytes as a checkpoint whose checksum is right, so that it does not keep
 * mutations from what reads the rest. What is accepted must be usable: the state of the hub as a
 * snapshot, the totals as those of a run that goes on. */
#include "model_io/checkpoint.h"

#include <string.h>

#include "../folder.h"
#include "base/file.h"
#include "record/tally.h"

enum { WORKERS = 2 };

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
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    at_plan_options options = {
        .strategy = "amb", .workers = WORKERS, .batch = 8, .limits = {.steps = UINT64_MAX}};
    at_plan       plan;
    at_fail       fail = {0};
    at_checkpoint checkpoint;
    unsigned char seal[32];
    at_err        err = at_plan_resolve(&options, &plan, &fail);
    assert(!err);
    char folder[128];
    snprintf(folder, sizeof folder, "%s/checkpoint", fuzz_folder());
    mkdir(folder, 0700);
    at_file_digest_bytes(data, size, seal);
    fuzz_file("checkpoint/step-000000000020.safetensors", data, size, seal, sizeof seal);
    if (at_checkpoint_open(fuzz_folder(), &checkpoint, &fail))
        assert(fail.text[0]);
    else
        use(&checkpoint, &plan);
    at_checkpoint_close(&checkpoint);
    return 0;
}
