/* --model none:P: no training. Messages have the size of P parameters and samples take time, but
 * no floats exist: for simulating strategies with thousands of workers. */
#include <assert.h>
#include <string.h>

#include "base/text.h"
#include "world/tasks/tasks.h"

enum { SAMPLES = 60000 }; /* per epoch, for limits in epochs */

bool at_task_is_none(const char *model)
{
    return strncmp(model, "none:", 5) == 0;
}

static const char *engine(void *self)
{
    (void)self;
    return "none";
}

static void free_task(void *self)
{
    assert(!self);
}

at_err at_task_none(const char *model, at_task *task, at_fail *fail)
{
    int64_t params;
    assert(at_task_is_none(model));
    if (!at_text_whole(model + 5, &params) || params < 1 || params > (int64_t)1 << 40)
        return at_fail_set(fail, AT_ERR_USAGE,
                           "use none:P, where P is the number of parameters, as in none:4607178",
                           "unknown model '%s'", model);
    *task = (at_task){.model = model,
                      .data = "none",
                      .params = (size_t)params,
                      .slot_floats = (size_t)params,
                      .parameters = (size_t)params,
                      .samples = SAMPLES,
                      .mults = (uint64_t)params,
                      .timing_only = true,
                      .engine = engine,
                      .free = free_task};
    return AT_OK;
}
