/* Fuzz target: any text as the state in a checkpoint. A hub must be able to continue from every
 * snapshot that is accepted as valid. The first byte selects the strategy. States of rules may be
 * shorter than they are: zeros are added, because a fuzzer would not keep their length. */
#include "record/log/snapshot_json.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "record/tally.h"

enum { WORKERS = 2, ROUNDS = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void step(at_hub *hub, at_event event, at_out *out)
{
    out->count = 0;
    at_hub_step(hub, &event, out);
}

/* Two workers join, report a few times and are ordered to leave. */
static void continue_run(at_hub *hub, at_out *out)
{
    at_ns now = AT_SEC(1);
    step(hub, (at_event){.kind = AT_EV_START, .now = now}, out);
    for (at_node id = 1; id <= WORKERS; id++) {
        at_event joined = {.kind = AT_EV_JOINED, .worker = id, .now = now};
        joined.as.joined.incarnation = 1;
        step(hub, joined, out);
    }
    for (uint64_t round = 0; round < ROUNDS; round++)
        for (at_node id = 1; id <= WORKERS && hub->end == AT_END_RUNNING; id++) {
            now += AT_MS(10);
            at_event report = {.kind = AT_EV_MESSAGE, .worker = id, .now = now};
            report.as.report = (at_report){
                .incarnation = 1,
                .sequence = hub->member[id - 1].sequence + 1,
                .work = {
                    .samples = 8, .version = hub->version, .loss_sum = 8, .compute_ns = AT_MS(5)}};
            step(hub, report, out);
            at_event applied = {.kind = AT_EV_APPLIED, .now = now};
            applied.as.applied.norm2_step = 1;
            applied.as.applied.norm2_piece = 2;
            if (hub->applying) step(hub, applied, out);
        }
    if (!hub->finished) step(hub, (at_event){.kind = AT_EV_STOP, .now = now}, out);
}

/* Adds zeros to the bytes of a state. */
static void pad(json_t *state, size_t size)
{
    const json_t *bytes = json_object_get(state, "bytes");
    size_t        digits = json_string_length(bytes);
    if (!json_is_string(bytes) || digits >= 2 * size) return;
    char *text = malloc(2 * size);
    assert(text);
    memcpy(text, json_string_value(bytes), digits);
    memset(text + digits, '0', 2 * size - digits);
    json_object_set_new(state, "bytes", json_stringn_nocheck(text, 2 * size));
    free(text);
}

static void try_snapshot(const json_t *state, const at_plan *plan)
{
    at_snapshot *snapshot;
    at_fail      fail = {0};
    json_t      *image = json_object_get(state, "image");
    pad(json_object_get(image, "size_state"), at_size_state_bytes(plan));
    pad(json_object_get(image, "gather_state"), at_gather_state_bytes(plan));
    if (at_snapshot_read(image, &snapshot, &fail)) {
        assert(!snapshot && fail.text[0]);
        return;
    }
    size_t size = (at_hub_size(plan) + 63) / 64 * 64;
    void  *memory = aligned_alloc(64, size);
    assert(memory);
    memset(memory, 0, size);
    at_action actions[64];
    at_out    out = {.actions = actions, .size = 64};
    if (at_snapshot_valid(snapshot, plan)) {
        at_hub *hub = at_hub_init(plan, memory, size);
        at_snapshot_restore(hub, snapshot);
        continue_run(hub, &out);
    }
    free(memory);
    free(snapshot);
}

static void try_tally(const json_t *state, const at_plan *plan)
{
    at_run_info info = {.plan = plan};
    at_sink     sink;
    at_fail     fail = {0};
    at_tally   *tally = at_tally_new(&info, &sink);
    assert(tally);
    at_err err = at_tally_resume(tally, json_object_get(state, "tally"), &fail);
    assert(!err || fail.text[0]);
    if (!err) assert(at_tally_steps(tally).count == tally->step_count);
    at_tally_free(tally);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const strategies[] = {"amb",         "dbs",    "loss",   "noise",
                                             "probe",       "ssp",    "grow",   "stall",
                                             "loss-target", "quorum", "adasync"};
    if (size < 1) return 0;
    at_plan_options options = {.strategy =
                                   strategies[data[0] % (sizeof strategies / sizeof *strategies)],
                               .workers = WORKERS,
                               .batch = 8,
                               .limits = {.steps = UINT64_MAX}};
    at_plan         plan;
    at_fail         fail = {0};
    at_err          err = at_plan_resolve(&options, &plan, &fail);
    assert(!err);
    plan.samples_epoch = 32;
    json_t *state = json_loadb((const char *)data + 1, size - 1, 0, NULL);
    if (!state) return 0;
    try_snapshot(state, &plan);
    try_tally(state, &plan);
    json_decref(state);
    return 0;
}
