/* Checkpoints of a run with seats. Where seats update, the hub has no parameters of its own: it
 * asks the first seat, which hands them over at the start of its next round, and saves when they
 * come. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "world/seat/seat_world.h"

/* Parameters that seats have handed over are known, and as new as the hub's count of steps. */
static bool has_newest(const at_seat_world *w)
{
    return !w->seats->spec.at_workers || w->seats->base == w->host.hub->version;
}

/* Those who leave hand over what they have without being asked. */
static void ask(at_seat_world *w)
{
    if (w->host.hub->end == AT_END_RUNNING) at_seat_ask_to_publish(w);
}

bool at_seat_vectors(void *self, at_saver_input *input)
{
    at_seat_world *w = self;
    at_seat_hub   *seats = w->seats;
    uint32_t       first = seats->spec.at_workers ? 1 : 0; /* the parameters themselves */
    w->save_waits = !has_newest(w);
    if (w->save_waits) {
        ask(w); /* before the next orders are sent, after which it is too late for this version */
        return false;
    }
    assert(seats->kept_count >= first);
    if (seats->spec.at_workers) input->params = at_seat_hub_params(seats);
    input->extra = first ? seats->kept + first : seats->kept;
    input->extras = seats->kept_count - first;
    return true;
}

void at_seat_save_if_due(at_seat_world *w)
{
    if (!w->save_waits) return;
    at_seat_hub_poll(w->seats);
    if (has_newest(w)) {
        w->save_waits = false;
        at_host_save(&w->host, at_host_now(&w->host));
    } else {
        ask(w);
    }
}

static at_err take_kept(void *self, const char *name, const float *values, size_t count,
                        at_fail *fail)
{
    if (!*name || strlen(name) >= AT_SEAT_NAME_SIZE)
        return at_fail_set(fail, AT_ERR_FORMAT, NULL, "a saved tensor has an impossible name");
    return at_seat_hub_keep(self, name, values, count * sizeof *values, fail);
}

at_err at_seat_resume(at_seat_world *w, at_fail *fail)
{
    const at_world_context *context = w->context;
    at_seat_hub            *seats = w->seats;
    float                  *params = at_seat_floats(&w->params);
    size_t                  size = seats->spec.floats * sizeof(float);
    if (!context->resume) return AT_OK;
    if (seats->spec.at_workers) { /* mean gradients come where the parameters are now */
        AT_TRY(at_seat_hub_keep(seats, AT_SEAT_PARAMS_NAME, params, size, fail));
        memset(params, 0, size);
        seats->base = w->host.hub->version;
    }
    return at_checkpoint_extras(context->resume, take_kept, seats, fail);
}
