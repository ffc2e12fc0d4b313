/* Fuzz target: any bytes as the event log that `replay` feeds to a fresh hub. Events that no run
 * could have had are refused or are differences. */
#include "record/replay/replay.h"

#include "../event_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    at_replay replay = {0};
    at_fail   fail = {0};
    if (!fuzz_log_is_small(fuzz_log(data, size))) return 0;
    at_err err = at_replay_run(fuzz_folder(), &replay, &fail);
    assert(!err == !fail.text[0]);
    if (!err && replay.difference.found) assert(replay.difference.line[0]);
    return 0;
}
