#include "world/mpi/mpi_slices.h"

#include <assert.h>
#include <stdlib.h>

#include "world/process/child.h"

/* Calls: gradients to or from each rank, a broadcast per hub, state vectors to or from each hub. */
uint32_t at_mpi_slices_calls(uint32_t hubs, uint32_t ranks)
{
    assert(hubs < ranks);
    return ranks + hubs + 2 * hubs;
}

static uint32_t call_gradient(const at_mpi_slices *s, uint32_t rank)
{
    assert(rank < s->hubs + s->workers);
    return at_mpi_ranks_call(s->ranks, rank);
}

static uint32_t call_cast(const at_mpi_slices *s, uint32_t hub)
{
    assert(hub < s->hubs);
    return at_mpi_ranks_call(s->ranks, s->hubs + s->workers + hub);
}

static uint32_t call_state(const at_mpi_slices *s, uint32_t hub, uint32_t state)
{
    assert(hub < s->hubs && state < 2);
    return at_mpi_ranks_call(s->ranks, s->workers + (2 + state) * s->hubs + hub);
}

static uint32_t own_rank(const at_mpi_slices *s)
{
    assert(s->ranks->launcher);
    return s->ranks->launcher->rank;
}

static bool is_hub(const at_mpi_slices *s)
{
    return own_rank(s) < s->hubs;
}

/* The slice of a hub; those of the last hubs may be empty when vectors are short. */
static at_slice slice_of(const at_mpi_slices *s, uint32_t hub)
{
    size_t params = s->updater->params;
    size_t blocks = (params + AT_UPDATER_BLOCK - 1) / AT_UPDATER_BLOCK;
    size_t size = (blocks + s->hubs - 1) / s->hubs * AT_UPDATER_BLOCK;
    size_t first = hub * size < params ? hub * size : params;
    assert(hub < s->hubs);
    return (at_slice){first, params - first < size ? params - first : size};
}

/* ---- gradients ------------------------------------------------------------------------------- */

void at_mpi_slices_send(at_mpi_slices *s)
{
    at_mpi_calls *calls = s->ranks->calls;
    at_slice      own = is_hub(s) ? slice_of(s, own_rank(s)) : (at_slice){0};
    assert(!s->ranks->broken);
    for (uint32_t i = 0; i < s->workers && own.count > 0; i++)
        at_mpi_receive(calls, call_gradient(s, s->hubs + i), s->inbox[i] + own.first, own.count,
                       s->hubs + i, AT_MPI_TAG_REPORT);
    for (uint32_t h = 0; h < s->hubs && !is_hub(s); h++) {
        at_slice slice = slice_of(s, h);
        if (slice.count > 0)
            at_mpi_send(calls, call_gradient(s, h), s->gradient + slice.first, slice.count, h,
                        AT_MPI_TAG_REPORT);
    }
}

const float *at_mpi_slices_gradient(const at_mpi_slices *s, at_node worker)
{
    assert(worker >= 1 && worker <= s->workers);
    return is_hub(s) ? s->inbox[worker - 1] : s->gradient;
}

/* ---- parameters ------------------------------------------------------------------------------ */

/* Computes our slice of the update, if this rank is a hub, and receives the other slices. With
 * --clip an update runs twice; after a loss the second time would find nobody to talk to. */
static void run(void *self, const at_piece *pieces, uint32_t count)
{
    at_mpi_slices *s = self;
    (void)pieces;
    (void)count;
    at_slice own = is_hub(s) ? slice_of(s, own_rank(s)) : (at_slice){0};
    assert(s->updater->w);
    if (s->torn) return;
    if (own.count > 0) at_updater_slice(s->updater, own);
    for (uint32_t h = 0; h < s->hubs; h++) {
        at_slice slice = slice_of(s, h);
        if (slice.count == 0) continue;
        at_update_result result = at_updater_result(s->updater, slice);
        at_mpi_broadcast(s->ranks->calls, call_cast(s, h), result.floats, result.count, h);
    }
    if (!at_mpi_ranks_settle(s->ranks)) s->torn = true;
}

/* ---- optimizer state ------------------------------------------------------------------------- */

static void answer(void *self, uint32_t rank)
{
    at_mpi_slices *s = self;
    if (rank != 0 || !is_hub(s)) { /* only rank 0 saves, and only hubs have something to save */
        at_fail fail;
        at_fail_set(&fail, AT_ERR_FORMAT, "use the same anytime on all machines",
                    "its messages make no sense: it asks for the state of rank %u", own_rank(s));
        at_mpi_ranks_blame(s->ranks, rank, &fail);
        return;
    }
    at_slice own = slice_of(s, own_rank(s));
    for (uint32_t i = 0; i < s->updater->learning->optim->states && own.count > 0; i++)
        at_mpi_send(s->ranks->calls, call_state(s, own_rank(s), i),
                    s->updater->state[i] + own.first, own.count, rank, AT_MPI_TAG_REPORT);
}

bool at_mpi_slices_fetch(at_mpi_slices *s)
{
    uint32_t states = s->updater->learning->optim->states;
    assert(s->hubs >= 1);
    if (s->ranks->broken) return false;
    for (uint32_t h = 1; h < s->hubs && states > 0; h++) {
        at_slice slice = slice_of(s, h);
        for (uint32_t i = 0; i < states && slice.count > 0; i++)
            at_mpi_receive(s->ranks->calls, call_state(s, h, i), s->updater->state[i] + slice.first,
                           slice.count, h, AT_MPI_TAG_REPORT);
        at_mpi_ranks_ask(s->ranks, h);
    }
    return at_mpi_ranks_settle(s->ranks);
}

/* ---- start ----------------------------------------------------------------------------------- */

/* Mapped memory, because only the pages of the slice are ever written. Never released: after a loss
 * MPI may still use it. */
static at_err open_inbox(at_mpi_slices *s, at_fail *fail)
{
    assert(s->workers >= 1);
    s->inbox = calloc(s->workers, sizeof *s->inbox);
    if (!s->inbox) return at_fail_memory(fail);
    for (uint32_t i = 0; i < s->workers; i++) {
        s->inbox[i] = at_child_share(s->updater->params * sizeof(float), fail);
        if (!s->inbox[i]) return fail->err;
    }
    return AT_OK;
}

at_err at_mpi_slices_open(at_mpi_slices *s, at_mpi_ranks *ranks, uint32_t hubs, at_updater *updater,
                          const float *gradient, at_fail *fail)
{
    assert(hubs >= 1 && hubs < ranks->launcher->size);
    *s = (at_mpi_slices){.hubs = hubs,
                         .workers = ranks->launcher->size - hubs,
                         .ranks = ranks,
                         .updater = updater,
                         .gradient = gradient};
    updater->helpers = (at_update_helpers){s, run};
    ranks->self = s;
    ranks->answer = answer;
    return is_hub(s) ? open_inbox(s, fail) : AT_OK;
}
