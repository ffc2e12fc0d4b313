/* Fuzz target: any bytes as the event log that `simulate --from` and `advise` measure. */
#include "report/summary/pace_from_run.h"

#include <math.h>

#include "../event_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    at_run_pace pace;
    at_fail     fail = {0};
    if (!fuzz_log_is_small(fuzz_log(data, size))) return 0;
    at_err err = at_run_pace_read(fuzz_folder(), &pace, &fail);
    assert(!err == !fail.text[0]);
    if (err) return 0;
    for (uint32_t i = 0; i < pace.workers; i++) assert(pace.sample_ns[i] >= 0);
    assert(pace.message >= 0);
    at_run_pace_deinit(&pace);
    return 0;
}
