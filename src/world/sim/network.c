#include "world/sim/network.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "pace/pace.h"

/* ---- options --------------------------------------------------------------------------------- */

static const char *const broadcast_names[] = {"each", "share", "all", "tree"};
static const char *const reduce_names[] = {"each", "tree"};
static const char *const allreduce_names[] = {"none", "ring", "tree"};

/* Position of `text` among the names from `first` on; NULL stands for the first of them. */
static at_err find_name(const char *option, const char *text, const char *const *names, int first,
                        int count, int *found, at_fail *fail)
{
    *found = first;
    if (!text) return AT_OK;
    for (int i = first; i < count; i++) {
        *found = i;
        if (strcmp(names[i], text) == 0) return AT_OK;
    }
    return at_text_unknown(option, text, names + first, (size_t)(count - first), fail);
}

static bool read_value(const char *text, bool is_time, double *value)
{
    at_ns time;
    if (!is_time) return at_text_real(text, value) && *value >= 1 && *value <= 1e15;
    if (!at_text_duration(text, &time)) return false;
    *value = (double)time;
    return true;
}

/* Reads "V1,V2,..". */
static at_err read_list(const char *option, const char *text, bool is_time, at_per_worker *list,
                        at_fail *fail)
{
    if (!text) return AT_OK;
    char  *copy = strdup(text), *rest = copy, *word;
    at_err err = copy ? AT_OK : at_fail_memory(fail);
    list->value = calloc(strlen(text) / 2 + 1, sizeof *list->value);
    if (!err && !list->value) err = at_fail_memory(fail);
    while (!err && (word = strsep(&rest, ","))) {
        if (!read_value(word, is_time, &list->value[list->count++]))
            err = at_fail_set(fail, AT_ERR_USAGE,
                              is_time ? "write it as 2ms, or 2ms,2ms,50ms: one per worker"
                                      : "write it as 1e8, or 1e8,1e8,2e7: one per worker, at least "
                                        "1 byte per second",
                              "%s: '%s' is not valid", option, word);
    }
    free(copy);
    return err;
}

static at_err read_options(at_sim_net *net, const at_world_context *context, at_fail *fail)
{
    const at_link_options *o = &context->links;
    int                    broadcast, reduce, allreduce;
    AT_TRY(find_name("--broadcast", o->broadcast, broadcast_names, 0, 4, &broadcast, fail));
    AT_TRY(find_name("--reduce", o->reduce, reduce_names, 0, 2, &reduce, fail));
    AT_TRY(find_name("--allreduce", o->allreduce, allreduce_names, 1, 3, &allreduce, fail));
    net->broadcast = (at_broadcast)broadcast;
    net->reduce = (at_reduce)reduce;
    if (context->plan->mix->updates_by_workers) net->allreduce = (at_allreduce)allreduce;
    AT_TRY(
        read_list("--worker-bandwidth", o->worker_bandwidth, false, &net->worker_bandwidth, fail));
    return read_list("--worker-latency", o->worker_latency, true, &net->worker_latency, fail);
}

/* A reduction is complete when everybody has contributed. */
static at_err check_plan(const at_sim_net *net, const at_world_context *context, at_fail *fail)
{
    const at_plan *plan = context->plan;
    char           rule[AT_RULE_TEXT_SIZE];
    assert(plan->mix);
    bool waits = at_plan_waits_for_all(plan) && (!plan->then || at_plan_waits_for_all(plan->then));
    if (net->reduce == AT_REDUCE_TREE && !waits)
        return at_fail_set(fail, AT_ERR_USAGE, "leave it out, or use fmb or amb",
                           "--reduce tree needs a strategy whose steps wait for all workers");
    if (context->links.allreduce && !plan->mix->updates_by_workers)
        return at_fail_set(fail, AT_ERR_USAGE, "add --mix replicated",
                           "--allreduce %s needs --mix replicated", context->links.allreduce);
    bool has_links = net->latency > 0 || net->bandwidth > 0 || net->worker_bandwidth.count > 0 ||
                     net->worker_latency.count > 0;
    if (plan->mix->owned_by_workers && at_plan_mixing(plan).time > 0 && !has_links)
        return at_fail_set(fail, AT_ERR_USAGE,
                           "add --latency or --bandwidth, or give a number of rounds",
                           "--mix %s: messages take no time here, so any number of rounds would "
                           "fit",
                           at_plan_rule_text(plan, AT_MIX, rule, sizeof rule));
    bool through_hub = !plan->mix->updates_by_workers && !plan->mix->owned_by_workers;
    if (!through_hub && (context->links.broadcast || context->links.reduce))
        return at_fail_set(fail, AT_ERR_USAGE,
                           plan->mix->updates_by_workers ? "use --allreduce ring or tree"
                                                         : "leave them out",
                           "--broadcast and --reduce are about a hub with parameters, and --mix %s "
                           "has none",
                           at_plan_rule_text(plan, AT_MIX, rule, sizeof rule));
    return AT_OK;
}

at_err at_sim_net_check(const at_world_context *context, at_fail *fail)
{
    at_sim_net net = {.latency = context->latency, .bandwidth = context->bandwidth};
    assert(context->plan);
    at_err err = read_options(&net, context, fail);
    if (!err) err = check_plan(&net, context, fail);
    at_sim_net_deinit(&net);
    return err;
}

at_err at_sim_net_init(at_sim_net *net, const at_world_context *context, at_fail *fail)
{
    size_t workers = context->plan->workers_max;
    *net = (at_sim_net){.latency = context->latency,
                        .bandwidth = context->bandwidth,
                        .delay_sigma = context->comm_delay,
                        .seed = context->seed};
    AT_TRY(read_options(net, context, fail));
    net->workers = (uint32_t)workers;
    if (net->reduce != AT_REDUCE_TREE) return AT_OK;
    net->rank = calloc(workers, sizeof *net->rank);
    net->ready = calloc(workers + 1, sizeof *net->ready);
    return net->rank && net->ready ? AT_OK : at_fail_memory(fail);
}

void at_sim_net_deinit(at_sim_net *net)
{
    free(net->worker_bandwidth.value);
    free(net->worker_latency.value);
    free(net->rank);
    free(net->ready);
    *net = (at_sim_net){0};
}

/* ---- links ----------------------------------------------------------------------------------- */

static double value_of(const at_per_worker *list, at_node worker, double otherwise)
{
    assert(worker >= 1);
    return list->count > 0 ? list->value[(worker - 1) % list->count] : otherwise;
}

static at_ns transfer(double bandwidth, double bytes)
{
    assert(bytes >= 0);
    return bandwidth > 0 ? AT_SEC(bytes / bandwidth) : 0;
}

static at_ns own_transfer(const at_sim_net *net, at_node worker, double bytes)
{
    return transfer(value_of(&net->worker_bandwidth, worker, 0), bytes);
}

static at_ns longer(at_ns a, at_ns b)
{
    return a > b ? a : b;
}

/* A transfer between two nodes: the slower of their links counts. */
static at_ns hop(const at_sim_net *net, at_node worker, double bytes)
{
    return longer(transfer(net->bandwidth, bytes), own_transfer(net, worker, bytes));
}

static at_ns latency_of(const at_sim_net *net, at_node worker)
{
    return net->latency + (at_ns)value_of(&net->worker_latency, worker, 0);
}

static at_ns delay(at_sim_net *net)
{
    return at_comm_delay(net->delay_sigma, net->seed, 0, net->messages++);
}

/* Where everybody waits for everybody, the slowest link counts. */
static at_ns slowest_transfer(const at_sim_net *net, double bytes)
{
    const at_per_worker *rates = &net->worker_bandwidth;
    at_ns                slowest = transfer(net->bandwidth, bytes);
    for (size_t i = 0; i < rates->count; i++)
        slowest = longer(slowest, transfer(rates->value[i], bytes));
    return slowest;
}

/* ---- to the hub ------------------------------------------------------------------------------ */

static uint32_t log2_of(uint32_t rank)
{
    assert(rank >= 1);
    return 31 - (uint32_t)__builtin_clz(rank);
}

/* A node sends the sum of its own gradient and those of its children once it has all of them; it
 * receives from one child at a time. Ranks with more binary digits are further down, so in falling
 * order every node comes after its children. Returns when the hub has everything. */
static at_ns reduce_tree(at_sim_net *net, at_ns now, at_ns hop_ns)
{
    assert(net->reports == net->receivers);
    net->ready[0] = 0;
    for (uint32_t rank = net->receivers; rank >= 1; rank--) {
        uint32_t parent = rank - (1u << log2_of(rank));
        at_ns    sent = net->ready[rank] + net->latency;
        net->ready[parent] = longer(net->ready[parent], sent) + hop_ns;
    }
    assert(net->ready[0] >= now);
    return net->ready[0];
}

/* LIMIT: if a worker dies during a step, that step's sum is complete without the tree's delay. */
static at_ns reduce(at_sim_net *net, at_ns now, at_node worker, double bytes)
{
    uint32_t rank = net->rank[worker - 1];
    if (rank == 0 || bytes == 0) return now + latency_of(net, worker);
    net->rank[worker - 1] = 0; /* contributes once */
    net->ready[rank] = now + latency_of(net, worker) - net->latency;
    net->reports++;
    if (net->reports < net->receivers) return now + latency_of(net, worker);
    return reduce_tree(net, now, slowest_transfer(net, bytes));
}

at_ns at_sim_net_up(at_sim_net *net, at_ns now, at_node worker, double bytes)
{
    if (net->allreduce != AT_ALLREDUCE_NONE) return now + delay(net);
    if (net->reduce == AT_REDUCE_TREE) return reduce(net, now, worker, bytes) + delay(net);
    at_ns first = now + latency_of(net, worker); /* byte; the last one when its link has sent it */
    at_ns last = first + own_transfer(net, worker, bytes);
    net->in_free = longer(first, net->in_free) + transfer(net->bandwidth, bytes);
    return longer(net->in_free, last) + delay(net);
}

/* ---- from the hub ---------------------------------------------------------------------------- */

static void begin_broadcast(at_sim_net *net, at_ns now)
{
    net->sent = now;
    net->began = longer(now, net->out_free);
    net->receivers = net->reports = net->copies = 0;
    if (net->rank) memset(net->rank, 0, net->workers * sizeof *net->rank);
}

/* Everybody who has the parameters passes them on, to a new node each time: in the k-th turn, 2^k
 * nodes to 2^k others. So ranks 2^k and above get them in turn k + 1, from the rank without the
 * first binary digit, and over as many hops as their rank has ones. */
static at_ns pass_on(at_sim_net *net, uint32_t rank, at_node worker, double bytes)
{
    uint32_t turns = log2_of(rank) + 1, hops = (uint32_t)__builtin_popcount(rank);
    at_ns    extra = latency_of(net, worker) - net->latency;
    if (hops == 1) net->out_free = net->began + turns * transfer(net->bandwidth, bytes);
    return net->began + turns * hop(net, worker, bytes) + hops * net->latency + extra;
}

/* All copies get the same share of the link, so the last bytes of all of them come at its end. */
static at_ns share(at_sim_net *net, uint32_t rank, at_node worker, double bytes)
{
    if (net->copies < rank) net->copies = rank;
    at_ns all = transfer(net->bandwidth, bytes * net->copies);
    assert(net->copies >= 1);
    net->out_free = net->began + all;
    return net->began + longer(all, own_transfer(net, worker, bytes)) + latency_of(net, worker);
}

void at_sim_net_expect(at_sim_net *net, at_ns now, uint32_t copies)
{
    if (net->broadcast != AT_BROADCAST_SHARE) return;
    begin_broadcast(net, now);
    net->copies = copies;
}

static at_ns broadcast(at_sim_net *net, at_ns now, at_node worker, double bytes)
{
    bool begins = net->broadcast != AT_BROADCAST_SHARE && net->receivers == 0;
    if (begins || net->sent != now) begin_broadcast(net, now);
    uint32_t rank = ++net->receivers;
    if (net->rank) net->rank[worker - 1] = rank;
    if (net->broadcast == AT_BROADCAST_TREE) return pass_on(net, rank, worker, bytes);
    if (net->broadcast == AT_BROADCAST_SHARE) return share(net, rank, worker, bytes);
    bool sends = rank == 1 || net->broadcast == AT_BROADCAST_EACH;
    if (sends) {
        net->began = longer(now, net->out_free);
        net->out_free = net->began + transfer(net->bandwidth, bytes);
    }
    return net->began + hop(net, worker, bytes) + latency_of(net, worker);
}

at_ns at_sim_net_down(at_sim_net *net, at_ns now, at_node worker, double bytes)
{
    if (net->allreduce != AT_ALLREDUCE_NONE) return now + delay(net);
    if (bytes > 0) return broadcast(net, now, worker, bytes) + delay(net);
    return longer(now, net->out_free) + latency_of(net, worker) + delay(net);
}

/* ---- without a hub --------------------------------------------------------------------------- */

static at_ns slowest_hop(const at_sim_net *net, double bytes)
{
    const at_per_worker *late = &net->worker_latency;
    double               most = 0;
    assert(late->value || late->count == 0);
    for (size_t i = 0; i < late->count; i++) most = fmax(most, late->value[i]);
    return slowest_transfer(net, bytes) + net->latency + (at_ns)most;
}

/* Up and down a binomial tree, as Open MPI does it: a node receives from one child after the other,
 * and later sends to all of its children at the same time, so that they share its link. Children of
 * a node have one more binary digit. The longest way down is 0, 1, 3, 7, ..: no other node so far
 * from the root has as many children. */
static at_ns allreduce_tree(const at_sim_net *net, uint32_t workers, double bytes)
{
    uint32_t levels = log2_of(workers - 1) + 1, copies, hops = 0;
    at_ns    down = 0, latency = slowest_hop(net, 0);
    assert(workers >= 2);
    do {
        uint64_t node = (UINT64_C(1) << hops) - 1;
        copies = 0;
        for (uint32_t digit = hops; node + (UINT64_C(1) << digit) < workers; digit++) copies++;
        if (copies > 0) down += slowest_transfer(net, bytes * copies) + latency;
        hops++;
    } while (copies > 0);
    return levels * slowest_hop(net, bytes) + down;
}

at_ns at_sim_net_allreduce(const at_sim_net *net, uint32_t workers, double bytes)
{
    assert(net->allreduce != AT_ALLREDUCE_NONE);
    if (workers < 2) return 0;
    if (net->allreduce == AT_ALLREDUCE_RING) /* first the sums of n parts, then the parts to all */
        return 2 * (at_ns)(workers - 1) * slowest_hop(net, bytes / workers);
    return allreduce_tree(net, workers, bytes);
}

at_ns at_sim_net_gossip(const at_sim_net *net, at_node worker, uint32_t neighbours, double bytes)
{
    assert(net->allreduce == AT_ALLREDUCE_NONE);
    return neighbours > 0 ? hop(net, worker, bytes * neighbours) + latency_of(net, worker) : 0;
}
