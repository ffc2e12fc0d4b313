#include "world/mpi/mpi_gossip_hub.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "world/mpi/mpi_hub.h"
#include "world/process/alive.h"

static const at_ns CONFIRM_MAX = AT_MS(200);
static const at_ns COLLECT_MAX = AT_SEC(600); /* for one vector, of a worker that is alive */

/* ---- start and end --------------------------------------------------------------------------- */

static uint32_t call_mix(at_node worker, uint64_t step)
{
    return 2 * (worker - 1) + (uint32_t)(step % 2);
}

static uint32_t call_vector(const at_mpi_hub *h)
{
    return 2 * h->workers;
}

at_err at_mpi_gossip_hub_open(at_mpi_hub *h, at_fail *fail)
{
    at_mpi_gossip_hub *g = &h->gossip;
    size_t             params = h->context->task->params, messages, sums;
    if (!h->context->plan->mix->owned_by_workers) return AT_OK;
    AT_TRY(
        at_gossip_init(&g->gossip, h->context, at_param_sender_params(&h->sender), NULL, 0, fail));
    g->version = h->host.hub->version;
    g->message_size = at_mix_message_size(h->workers);
    g->inbox_size = AT_VECTOR_MESSAGE_HEAD + params * sizeof(float);
    if (at_size_product(2 * (size_t)h->workers, g->message_size, &messages))
        g->messages = calloc(1, messages);
    if (at_size_product(params, sizeof *g->sum, &sums)) g->sum = malloc(sums);
    g->inbox = at_mpi_alloc(g->inbox_size, 0);
    g->present = calloc(h->workers, sizeof *g->present);
    g->gone = calloc(h->workers, sizeof *g->gone);
    g->told = calloc(h->workers, sizeof *g->told);
    g->asked = calloc(h->workers, sizeof *g->asked);
    g->calls = at_mpi_calls_new(2 * h->workers + 1);
    if (!g->messages || !g->sum || !g->inbox || !g->present || !g->gone || !g->told || !g->asked ||
        !g->calls)
        return at_fail_memory_for(fail, "to average %u workers", h->workers);
    h->host.gossip = &g->gossip;
    return AT_OK;
}

void at_mpi_gossip_hub_close(at_mpi_gossip_hub *g)
{
    bool ended = !g->calls || !at_mpi_is_started() || at_mpi_calls_end(g->calls);
    if (ended) free(g->messages);
    if (ended) free(g->inbox);
    at_mpi_calls_free(g->calls);
    at_gossip_deinit(&g->gossip);
    free(g->sum);
    free(g->present);
    free(g->gone);
    free(g->told);
    free(g->asked);
    *g = (at_mpi_gossip_hub){0};
}

/* ---- who is gone ----------------------------------------------------------------------------- */

void at_mpi_gossip_hub_lose(at_mpi_hub *h, at_node worker)
{
    at_mpi_gossip_hub *g = &h->gossip;
    assert(worker >= 1 && worker <= h->workers);
    if (!g->calls) return;
    for (uint32_t i = 0; i < g->gone_count; i++)
        if (g->gone[i] == worker) return;
    g->gone[g->gone_count++] = worker;
    at_mpi_gossip_hub_tell(h);
}

void at_mpi_gossip_hub_tell(at_mpi_hub *h)
{
    at_mpi_gossip_hub *g = &h->gossip;
    for (at_node i = 1; g->gone_count > 0 && i <= h->workers; i++) {
        uint32_t *told = &g->told[i - 1];
        if (h->peer[i - 1].state != AT_MPI_WORKING || *told == g->gone_count) continue;
        const at_hub_message gone = {.kind = AT_HUB_MESSAGE_GONE, .worker = g->gone[*told]};
        *told += at_param_sender_message(&h->sender, i, &gone, NULL);
    }
}

/* The worker is at work, and has parameters of the newest version, or will have them soon. */
static bool has_params(const at_mpi_hub *h, at_node worker)
{
    const at_mpi_peer *peer = &h->peer[worker - 1];
    return peer->state == AT_MPI_WORKING && !peer->fault[0] && !peer->evicted &&
           h->sender.receiver[worker - 1].version == h->sender.version;
}

/* ---- a step ---------------------------------------------------------------------------------- */

/* Whoever has reported on the last MIX has received it; MPI may not have confirmed it yet. */
static void send_mix(at_mpi_hub *h, at_node worker, const at_hub_message *mix)
{
    at_mpi_gossip_hub *g = &h->gossip;
    uint32_t           call = call_mix(worker, mix->version);
    unsigned char     *bytes = g->messages + call * g->message_size;
    const at_mpi_done *done;
    at_ns              since = at_clock_now();
    at_fail            fail;
    while (at_mpi_is_open(g->calls, call) && at_clock_now() - since < CONFIRM_MAX)
        at_mpi_poll(g->calls, &done);
    if (at_mpi_is_open(g->calls, call)) {
        at_fail_set(&fail, AT_ERR_FAILED, NULL, "it does not receive its messages");
        at_mpi_hub_blame(h, worker, &fail);
        return;
    }
    at_mix_message_write(bytes, mix, g->present, h->workers);
    at_mpi_send(g->calls, call, bytes, g->message_size / AT_MESSAGE_UNIT, worker, AT_MPI_TAG_MAIL);
}

static bool has_piece(const at_action *apply, at_node worker)
{
    for (uint32_t i = 0; i < apply->as.apply.count; i++)
        if (apply->as.apply.pieces[i].worker == worker) return true;
    return false;
}

double at_mpi_gossip_hub_mix(void *self, const at_action *apply)
{
    at_mpi_hub        *h = self;
    at_mpi_gossip_hub *g = &h->gossip;
    at_hub_message     mix = {.kind = AT_HUB_MESSAGE_MIX,
                              .version = apply->as.apply.step,
                              .used = apply->as.apply.samples_used,
                              .lr_factor = apply->as.apply.lr_factor};
    at_gossip_step     step = {.samples_used = mix.used, .lr_factor = mix.lr_factor};
    assert(mix.version == h->sender.version + 1);
    for (at_node i = 1; i <= h->workers; i++) g->present[i - 1] = has_params(h, i);
    for (at_node i = 1; i <= h->workers; i++) {
        if (!g->present[i - 1]) continue;
        mix.counts = has_piece(apply, i);
        send_mix(h, i, &mix);
        at_param_sender_assume(&h->sender, i, mix.version);
    }
    return at_gossip_rate(h->context->learning, &step);
}

/* ---- the mean model -------------------------------------------------------------------------- */

/* Watches a worker that is waited for. It is lost later, when no event is being processed; but its
 * neighbors must know now, because others may wait for them. */
static bool is_gone(at_mpi_hub *h, at_node worker)
{
    at_mpi_peer *peer = &h->peer[worker - 1];
    at_fail      fail;
    if (peer->near && !at_alive(peer->hello.pid, peer->hello.born)) {
        at_fail_set(&fail, AT_ERR_FAILED, NULL, "its process is gone");
        at_mpi_hub_blame(h, worker, &fail);
    } else if (at_failure_detector_is_gone(&peer->detector, h->clock.listened)) {
        at_fail_set(&fail, AT_ERR_FAILED, NULL, "no message for %.1f s",
                    at_seconds(h->clock.listened - peer->detector.heard));
        at_mpi_hub_blame(h, worker, &fail);
    }
    if (peer->fault[0]) at_mpi_gossip_hub_lose(h, worker);
    return peer->fault[0] || peer->state != AT_MPI_WORKING;
}

/* Asks every worker for its parameters, once per version. */
static void ask_all(at_mpi_hub *h)
{
    const at_hub_message ask = {.kind = AT_HUB_MESSAGE_COLLECT, .version = h->sender.version};
    for (at_node i = 1; i <= h->workers; i++) {
        uint64_t *asked = &h->gossip.asked[i - 1];
        if (*asked == ask.version || !has_params(h, i)) continue;
        if (at_param_sender_message(&h->sender, i, &ask, NULL)) *asked = ask.version;
    }
}

/* Keeps everything going that does not change the state of the run. */
static void keep_going(at_mpi_hub *h)
{
    ask_all(h);
    if (at_mpi_hub_receive(h)) at_backoff_end(&h->backoff);
    for (at_node i = 1; i <= h->workers; i++) {
        if (h->peer[i - 1].state == AT_MPI_WORKING) is_gone(h, i);
        at_mpi_hub_heartbeat(h, i, at_clock_now());
    }
    at_mpi_gossip_hub_tell(h);
    at_backoff_nap(&h->backoff, AT_NEVER);
}

/* MPI may still write into the memory of a receive that is given up. */
static void give_up(at_mpi_hub *h)
{
    at_mpi_gossip_hub *g = &h->gossip;
    if (!at_mpi_is_open(g->calls, call_vector(h))) return;
    at_mpi_cancel(g->calls, call_vector(h));
    g->inbox = at_mpi_alloc(g->inbox_size, 0);
}

/* Receives the parameters of one worker into the inbox; false: it is gone. */
static bool receive_vector(at_mpi_hub *h, at_node worker)
{
    at_mpi_gossip_hub *g = &h->gossip;
    const at_mpi_done *done;
    at_vector_message  head,
        expected = {.version = h->sender.version, .floats = h->context->task->params};
    at_ns   since = at_clock_now();
    at_fail fail = {0};
    if (!g->inbox) return false;
    at_mpi_receive(g->calls, call_vector(h), g->inbox, g->inbox_size / AT_MESSAGE_UNIT, worker,
                   AT_MPI_TAG_VECTOR);
    while (!is_gone(h, worker) && at_clock_now() - since < COLLECT_MAX) {
        uint32_t count = at_mpi_poll(g->calls, &done);
        for (uint32_t i = 0; i < count; i++) {
            if (done[i].call != call_vector(h)) continue;
            size_t size = done[i].units * AT_MESSAGE_UNIT;
            at_backoff_end(&h->backoff);
            if (!at_mpi_check(done[i].error, "a receive from it", &fail) &&
                !at_vector_message_read(g->inbox, size, &expected, &head, &fail))
                return true;
            at_mpi_hub_blame(h, worker, &fail);
            return false;
        }
        keep_going(h);
    }
    give_up(h);
    return false;
}

/* Adds the vector in the inbox, the `count`-th one, to the sum. Returns by how much the sum of
 * squared distances from the mean grows. */
static double add_vector(at_mpi_gossip_hub *g, size_t params, uint32_t count)
{
    const float *w = (const float *)(const void *)(g->inbox + AT_VECTOR_MESSAGE_HEAD);
    double       grown = 0;
    assert(count >= 1);
    for (size_t p = 0; p < params; p++) {
        double before = count > 1 ? g->sum[p] / (count - 1) : w[p];
        g->sum[p] = count > 1 ? g->sum[p] + w[p] : w[p];
        grown += (w[p] - before) * (w[p] - g->sum[p] / count);
    }
    return grown;
}

bool at_mpi_gossip_hub_collect(void *self)
{
    at_mpi_hub        *h = self;
    at_mpi_gossip_hub *g = &h->gossip;
    size_t             params = h->context->task->params;
    float             *mean = at_param_sender_params(&h->sender);
    uint32_t           count = 0;
    double             distance2 = 0;
    if (g->version == h->sender.version) return true;
    for (at_node i = 1; i <= h->workers; i++)
        if (has_params(h, i) && receive_vector(h, i)) distance2 += add_vector(g, params, ++count);
    if (count == 0) return false;
    if (h->host.ops.change) h->host.ops.change(h);
    for (size_t p = 0; p < params; p++) mean[p] = (float)(g->sum[p] / count);
    g->gossip.disagreement = sqrt(distance2 / count);
    g->version = h->sender.version;
    return true;
}
