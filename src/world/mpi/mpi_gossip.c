#include "world/mpi/mpi_gossip.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "world/core/gossip_node.h"
#include "world/mpi/mpi_comm.h"

/* Calls of a link: sends by parity of the round, because the other end may not have confirmed the
 * one before; and the receive. The last call of all sends to the hub. */
enum { CALL_SEND, CALL_RECEIVE = 2, LINK_CALLS };

/* A message: head and vector. */
typedef struct buffer {
    unsigned char *bytes;
    uint32_t       users; /* sends in progress */
} buffer;

/* A neighbor. */
typedef struct link {
    uint32_t          node;
    bool              gone;    /* the hub has said so, or MPI fails */
    bool              takes;   /* part in this round */
    bool              arrived; /* its message of this round is in the inbox: */
    at_vector_message head;
    unsigned char    *inbox;
    buffer           *sent[2]; /* what is being sent to it, by parity of the round */
} link;

struct at_mpi_gossip {
    const at_world_context *context;
    at_node                 id;
    at_mixing               mixing;
    at_graph                graph;
    at_gossip_node          node;
    size_t                  params, message_size;
    at_mpi_calls           *calls;
    link                   *link;
    uint32_t                links;
    at_gossip_part         *part;    /* of one round */
    buffer                 *buffer;  /* three, and what lost neighbors may hold for ever */
    uint32_t                buffers; /* that may be allocated */
    buffer                 *mine;    /* the worker's own message of this round */
    buffer                 *next;    /* the one of the next round, which has not begun yet */
    float                  *w;
    unsigned char          *reply; /* to the hub */
    bool                   *present;
    uint64_t                version, wanted; /* AT_VERSION_NONE: none */
    /* The averaging under way. */
    bool           averages, last;
    at_gossip_step step;
    uint32_t       round; /* from 1 */
    at_ns          begun, round_begun;
    at_ns          round_took; /* the one before, perhaps of the step before */
};

/* ---- start and end --------------------------------------------------------------------------- */

static float *floats_of(unsigned char *bytes)
{
    return (float *)(void *)(bytes + AT_VECTOR_MESSAGE_HEAD);
}

static at_err new_links(at_mpi_gossip *g, at_fail *fail)
{
    uint32_t me = g->id - 1, first = g->graph.first[me];
    bool     enough = true;
    g->links = g->graph.first[me + 1] - first;
    g->buffers = 3 + 2 * g->links;
    g->link = calloc(g->links + 1, sizeof *g->link);
    g->part = calloc(g->links + 1, sizeof *g->part);
    g->buffer = calloc(g->buffers, sizeof *g->buffer);
    g->calls = at_mpi_calls_new(g->links * LINK_CALLS + 1);
    if (!g->link || !g->part || !g->buffer || !g->calls) return at_fail_memory(fail);
    for (uint32_t i = 0; i < g->links; i++) {
        g->link[i].node = g->graph.neighbour[first + i];
        g->link[i].inbox = at_mpi_alloc(g->message_size, g->message_size);
        enough = enough && g->link[i].inbox;
    }
    return enough ? AT_OK : at_fail_memory_for(fail, "for the vectors of %u neighbors", g->links);
}

static at_err prepare(at_mpi_gossip *g, at_fail *fail)
{
    const at_world_context *context = g->context;
    const at_plan          *plan = context->plan;
    AT_TRY(at_graph_init(&g->graph, g->mixing.graph, plan->workers_max, g->mixing.matrix,
                         context->seed, fail));
    AT_TRY(new_links(g, fail));
    g->w = at_mpi_alloc(g->message_size, g->message_size);
    g->reply = at_mpi_alloc(g->message_size, g->message_size);
    g->present = calloc(plan->workers_max, sizeof *g->present);
    if (!g->w || !g->reply || !g->present)
        return at_fail_memory_for(fail, "for a worker's own parameters");
    /* The node gets its message with each step. */
    return at_gossip_node_init(&g->node, g->mixing.form, context->learning, g->w,
                               floats_of(g->reply), g->params, fail);
}

at_err at_mpi_gossip_new(const at_world_context *context, at_node id, at_mpi_gossip **gossip,
                         at_fail *fail)
{
    size_t params = context->task->params, padded = (params + 15) / 16 * 16;
    assert(id >= 1 && id <= context->plan->workers_max);
    *gossip = NULL;
    if (!context->plan->mix->owned_by_workers) return AT_OK;
    if (padded > ((size_t)INT32_MAX - AT_VECTOR_MESSAGE_HEAD) / sizeof(float))
        return at_fail_set(fail, AT_ERR_USAGE, "use a smaller model",
                           "%zu parameters do not fit into one MPI message", params);
    at_mpi_gossip *g = calloc(1, sizeof *g);
    if (!g) return at_fail_memory(fail);
    *g = (at_mpi_gossip){.context = context,
                         .id = id,
                         .mixing = at_plan_mixing(context->plan),
                         .params = params,
                         .message_size = AT_VECTOR_MESSAGE_HEAD + padded * sizeof(float),
                         .version = AT_VERSION_NONE,
                         .wanted = AT_VERSION_NONE};
    at_err err = prepare(g, fail);
    if (err)
        at_mpi_gossip_free(g);
    else
        *gossip = g;
    return err;
}

/* Messages to a lost neighbor may be open for ever: their memory stays. */
void at_mpi_gossip_free(at_mpi_gossip *g)
{
    if (!g) return;
    bool ended = !g->calls || !at_mpi_is_started() || at_mpi_calls_end(g->calls);
    for (uint32_t i = 0; ended && g->link && i < g->links; i++) free(g->link[i].inbox);
    for (uint32_t i = 0; ended && g->buffer && i < g->buffers; i++) free(g->buffer[i].bytes);
    if (ended) free(g->reply);
    at_mpi_calls_free(g->calls);
    at_gossip_node_deinit(&g->node);
    at_graph_deinit(&g->graph);
    free(g->w);
    free(g->present);
    free(g->link);
    free(g->part);
    free(g->buffer);
    free(g);
}

/* ---- parameters ------------------------------------------------------------------------------ */

const float *at_mpi_gossip_params(const at_mpi_gossip *g)
{
    assert(g->version != AT_VERSION_NONE);
    return g->w;
}

uint64_t at_mpi_gossip_version(const at_mpi_gossip *g)
{
    return g->version;
}

bool at_mpi_gossip_averages(const at_mpi_gossip *g)
{
    return g->averages;
}

uint64_t at_mpi_gossip_version_next(const at_mpi_gossip *g)
{
    return g->averages ? g->version + 1 : g->version;
}

at_err at_mpi_gossip_adopt(at_mpi_gossip *g, const float *params, uint64_t version, at_fail *fail)
{
    assert(version != AT_VERSION_NONE);
    if (g->averages)
        return at_fail_set(fail, AT_ERR_FORMAT, "use the same anytime on all machines",
                           "it sends parameters while this worker averages: version %llu",
                           (unsigned long long)version);
    memcpy(g->w, params, g->params * sizeof *params);
    if (g->node.start) memcpy(g->node.start, params, g->params * sizeof *params);
    g->version = version;
    return AT_OK;
}

static uint32_t call_of(const at_mpi_gossip *g, const link *to, uint32_t which)
{
    assert(to >= g->link && to < g->link + g->links);
    return (uint32_t)(to - g->link) * LINK_CALLS + which;
}

static uint32_t call_hub(const at_mpi_gossip *g)
{
    return g->links * LINK_CALLS;
}

at_err at_mpi_gossip_collect(at_mpi_gossip *g, uint64_t version, at_fail *fail)
{
    uint64_t next = at_mpi_gossip_version_next(g);
    if (g->version != AT_VERSION_NONE && version <= next) {
        g->wanted = version;
        return AT_OK;
    }
    return at_fail_set(fail, AT_ERR_FORMAT, "use the same anytime on all machines",
                       "it wants parameters of a step that was not made: %llu",
                       (unsigned long long)version);
}

/* Sent from a copy: the hub may take it while the next averaging changes the parameters. */
static void reply(at_mpi_gossip *g)
{
    if (g->wanted == AT_VERSION_NONE || g->wanted > g->version) return;
    if (at_mpi_is_open(g->calls, call_hub(g))) return;
    g->wanted = AT_VERSION_NONE;
    at_vector_message_write(g->reply,
                            &(at_vector_message){.version = g->version, .floats = g->params});
    memcpy(floats_of(g->reply), g->w, g->params * sizeof *g->w);
    at_mpi_send(g->calls, call_hub(g), g->reply,
                AT_VECTOR_MESSAGE_HEAD / AT_MESSAGE_UNIT + g->params, 0, AT_MPI_TAG_VECTOR);
}

/* ---- neighbors ------------------------------------------------------------------------------- */

/* An inbox whose receive is cancelled may still be written to by MPI, and is never used again. */
static void lose(at_mpi_gossip *g, link *from)
{
    uint32_t call = call_of(g, from, CALL_RECEIVE);
    from->gone = true;
    if (!at_mpi_is_open(g->calls, call)) return;
    at_mpi_cancel(g->calls, call);
    from->inbox = NULL;
}

void at_mpi_gossip_gone(at_mpi_gossip *g, at_node worker)
{
    for (uint32_t i = 0; i < g->links; i++)
        if (g->link[i].node + 1 == worker) lose(g, &g->link[i]);
}

/* A buffer that is not being sent. Lost neighbors hold at most two each, so there is one; NULL:
 * not enough memory, or a neighbor that lives has not confirmed what it has answered. */
static buffer *free_buffer(at_mpi_gossip *g)
{
    for (uint32_t i = 0; i < g->buffers; i++) {
        buffer *one = &g->buffer[i];
        if (one->users > 0 || one == g->mine || one == g->next) continue;
        if (!one->bytes) one->bytes = at_mpi_alloc(g->message_size, g->message_size);
        if (one->bytes) return one;
    }
    return NULL;
}

/* For a time: the last if after it another one like the one before would not end in time. */
static bool is_last_round(const at_mpi_gossip *g)
{
    if (g->mixing.time == 0) return g->round == g->mixing.rounds;
    return at_clock_now() - g->begun + 2 * g->round_took > g->mixing.time;
}

/* True when the calls that the next round sends with are free. */
static bool can_send(const at_mpi_gossip *g)
{
    for (uint32_t i = 0; i < g->links; i++) {
        const link *to = &g->link[i];
        if (to->takes && !to->gone && to->sent[(g->round + 1) % 2]) return false;
    }
    return true;
}

static void begin_round(at_mpi_gossip *g)
{
    size_t   units = AT_VECTOR_MESSAGE_HEAD / AT_MESSAGE_UNIT + g->params;
    uint32_t parity = ++g->round % 2;
    buffer  *mine = g->mine = g->next;
    g->next = NULL;
    g->last = is_last_round(g);
    g->round_begun = at_clock_now();
    at_vector_message_write(mine->bytes, &(at_vector_message){.version = g->step.step,
                                                              .round = g->round,
                                                              .last = g->last,
                                                              .count = g->node.count,
                                                              .floats = g->params});
    for (uint32_t i = 0; i < g->links; i++) {
        link *to = &g->link[i];
        to->arrived = false;
        if (!to->takes || to->gone) continue;
        assert(!to->sent[parity]);
        to->sent[parity] = mine;
        mine->users++;
        at_mpi_send(g->calls, call_of(g, to, CALL_SEND + parity), mine->bytes, units, to->node + 1,
                    AT_MPI_TAG_VECTOR);
        at_mpi_receive(g->calls, call_of(g, to, CALL_RECEIVE), to->inbox, units, to->node + 1,
                       AT_MPI_TAG_VECTOR);
    }
}

static bool is_round_over(const at_mpi_gossip *g)
{
    for (uint32_t i = 0; i < g->links; i++) {
        const link *from = &g->link[i];
        if (from->takes && !from->gone && !from->arrived) return false;
    }
    return true;
}

/* Lists the vectors of this round in order of the nodes. The weights of neighbors that take no
 * part are the worker's own. */
static uint32_t list_parts(at_mpi_gossip *g)
{
    uint32_t             me = g->id - 1, count = 0, own = UINT32_MAX;
    double               own_weight = at_graph_own_weight(&g->graph, me);
    const at_gossip_part mine = {.message = floats_of(g->mine->bytes), .count = g->node.count};
    for (uint32_t i = 0; i < g->links; i++) {
        const link *from = &g->link[i];
        if (!g->graph.present[from->node]) continue;
        double weight = at_graph_weight(&g->graph, me, from->node);
        if (from->node > me && own == UINT32_MAX) g->part[own = count++] = mine;
        if (from->arrived)
            g->part[count++] = (at_gossip_part){floats_of(from->inbox), from->head.count, weight};
        else
            own_weight += weight;
    }
    if (own == UINT32_MAX) g->part[own = count++] = mine;
    g->part[own].weight = own_weight;
    return count;
}

/* ---- a step ---------------------------------------------------------------------------------- */

static at_err check_mix(const at_mpi_gossip *g, const at_hub_message *message, at_fail *fail)
{
    const char *what = g->averages                          ? "while it averages"
                       : message->version != g->version + 1 ? "of another step"
                       : !g->present[g->id - 1]             ? "without itself"
                                                            : NULL;
    if (g->version != AT_VERSION_NONE && !what) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, "use the same anytime on all machines",
                       "this worker is told to average %s: step %llu",
                       what ? what : "without parameters", (unsigned long long)message->version);
}

at_err at_mpi_gossip_mix(at_mpi_gossip *g, const at_hub_message *message, const void *bytes,
                         size_t size, const float *gradient, uint32_t samples, at_fail *fail)
{
    assert(message->kind == AT_HUB_MESSAGE_MIX);
    AT_TRY(at_mix_message_read(bytes, size, g->present, g->graph.nodes, fail));
    AT_TRY(check_mix(g, message, fail));
    buffer *mine = free_buffer(g);
    if (!mine) return at_fail_memory_for(fail, "to average with the neighbors");
    for (uint32_t i = 0; i < g->graph.nodes; i++) at_graph_set_present(&g->graph, i, g->present[i]);
    for (uint32_t i = 0; i < g->links; i++) g->link[i].takes = g->present[g->link[i].node];
    g->step = (at_gossip_step){.form = g->mixing.form,
                               .equal = g->mixing.equal,
                               .step = message->version,
                               .samples_used = message->used,
                               .lr_factor = message->lr_factor};
    g->averages = true;
    g->round = 0;
    g->begun = at_clock_now();
    g->node.message = floats_of(mine->bytes);
    at_gossip_begin(&g->node, &g->step, gradient, message->counts ? samples : 0);
    g->next = mine;
    return AT_OK;
}

static void end_step(at_mpi_gossip *g, buffer *result)
{
    g->node.message = floats_of(result->bytes);
    g->node.count = (float)g->node.count; /* as at_gossip_power_mix: one round has its bits */
    at_gossip_end(&g->node, &g->step);
    g->averages = false;
    g->version = g->step.step;
}

/* Averages what has arrived. */
static at_err end_round(at_mpi_gossip *g, at_fail *fail)
{
    buffer *result = free_buffer(g);
    bool    alone = true;
    if (!result) return at_fail_memory_for(fail, "to average with the neighbors");
    uint32_t count = list_parts(g);
    g->node.count = at_gossip_average(floats_of(result->bytes), g->params, g->part, count);
    for (uint32_t i = 0; i < g->links; i++) {
        link *from = &g->link[i];
        from->takes = from->takes && from->arrived && !from->head.last;
        alone = alone && !(from->takes && !from->gone);
    }
    g->round_took = at_clock_now() - g->round_begun;
    g->mine = NULL;
    if (g->last || (alone && g->mixing.time > 0))
        end_step(g, result);
    else
        g->next = result;
    return AT_OK;
}

/* Goes on as far as messages allow. */
static at_err average(at_mpi_gossip *g, at_fail *fail)
{
    while (g->averages) {
        if (g->next && !can_send(g)) return AT_OK;
        if (g->next) begin_round(g);
        if (!is_round_over(g)) return AT_OK;
        AT_TRY(end_round(g, fail));
    }
    return AT_OK;
}

/* ---- polling --------------------------------------------------------------------------------- */

/* A neighbor that sends nonsense would wait for this worker if that went on without it, and others
 * for both. */
static at_err read_vector(const at_mpi_gossip *g, link *from, size_t units, at_fail *fail)
{
    const at_vector_message expected = {
        .version = g->step.step, .round = g->round, .floats = g->params};
    if (!at_vector_message_read(from->inbox, units * AT_MESSAGE_UNIT, &expected, &from->head, fail))
        return AT_OK;
    return at_fail_wrap(fail, "worker %u", from->node + 1);
}

/* A neighbor whose connection fails is not waited for. The hub finds out by itself whether it
 * lives. */
static at_err end_call(at_mpi_gossip *g, const at_mpi_done *done, at_fail *fail)
{
    link    *one = &g->link[done->call / LINK_CALLS];
    uint32_t which = done->call % LINK_CALLS;
    bool     failed = done->error != 0;
    if (which == CALL_RECEIVE) {
        if (!failed) AT_TRY(read_vector(g, one, done->units, fail));
        one->arrived = !failed;
    } else if (one->sent[which]) {
        assert(one->sent[which]->users >= 1);
        one->sent[which]->users--;
        one->sent[which] = NULL;
    }
    if (failed) lose(g, one);
    return AT_OK;
}

at_err at_mpi_gossip_poll(at_mpi_gossip *g, bool *news, at_fail *fail)
{
    const at_mpi_done *done;
    uint64_t           before = g->version;
    uint32_t           count = at_mpi_poll(g->calls, &done);
    for (uint32_t i = 0; i < count; i++)
        if (done[i].call != call_hub(g)) AT_TRY(end_call(g, &done[i], fail));
    AT_TRY(average(g, fail));
    reply(g);
    *news = g->version != before;
    return at_mpi_calls_check(g->calls, fail);
}
