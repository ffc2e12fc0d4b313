#include "world/core/gossip_node.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "learn/engines/vectorize.h"
#include "learn/optim/schedule.h"

/* ---- a node ---------------------------------------------------------------------------------- */

at_err at_gossip_node_init(at_gossip_node *node, at_mix_form form, const at_learning *learning,
                           float *w, float *message, size_t params, at_fail *fail)
{
    size_t vectors = form == AT_MIX_DA ? 3 : 1, padded = (params + 15) / 16 * 16, size;
    assert(!learning->sparse);
    assert(w != message);
    *node = (at_gossip_node){.params = params, .w = w, .message = message};
    if (!at_size_product(vectors * sizeof(float), padded, &size)) return at_fail_memory(fail);
    node->memory = aligned_alloc(64, size > 0 ? size : 64);
    if (!node->memory) return at_fail_memory_for(fail, "for the parameters of a gossip node");
    memset(node->memory, 0, size);
    node->mean = node->memory;
    if (form == AT_MIX_DA) {
        node->dual = node->memory + padded;
        node->start = node->memory + 2 * padded;
        memcpy(node->start, w, params * sizeof *w);
    }
    return at_updater_init(&node->updater, learning, w, params, 1, fail);
}

void at_gossip_node_deinit(at_gossip_node *node)
{
    at_updater_deinit(&node->updater);
    free(node->memory);
    *node = (at_gossip_node){0};
}

static const float *only_gradient(void *self, at_node worker, uint32_t slot)
{
    (void)worker, (void)slot;
    return self;
}

/* The optimizer's step with a mean gradient. */
static double make_step(at_gossip_node *node, const at_gossip_step *step, float *mean)
{
    at_piece     piece = {.worker = 1, .samples = 1, .weight = 1};
    at_action    apply = {.kind = AT_ACT_APPLY};
    at_gradients gradients = {mean, only_gradient};
    assert(step->step >= 1);
    apply.as.apply.step = step->step;
    apply.as.apply.samples = 1;
    apply.as.apply.samples_used = step->samples_used;
    apply.as.apply.pieces = &piece;
    apply.as.apply.count = 1;
    apply.as.apply.lr_factor = step->lr_factor;
    return at_updater_apply(&node->updater, &apply, &gradients);
}

double at_gossip_rate(const at_learning *learning, const at_gossip_step *step)
{
    const at_rate *plain = &learning->rate[learning->groups];
    assert(step->lr_factor > 0);
    return at_schedule_now(&plain->schedule, (double)step->samples_used, (double)(step->step - 1)) *
           step->lr_factor;
}

AT_VECTORIZED static void scale(float *to, const float *from, size_t n, double factor)
{
    float f = (float)factor;
    for (size_t i = 0; i < n; i++) to[i] = f * from[i];
}

void at_gossip_begin(at_gossip_node *node, const at_gossip_step *step, const float *gradient,
                     uint32_t samples)
{
    size_t n = node->params;
    assert(gradient || samples == 0);
    node->samples = samples;
    node->count = step->equal ? 1 : samples;
    if (samples > 0)
        scale(node->mean, gradient, n, 1.0 / samples);
    else
        memset(node->mean, 0, n * sizeof(float));
    switch (step->form) {
    case AT_MIX_PG: scale(node->message, node->mean, n, node->count); return;
    case AT_MIX_PWG:
        if (samples > 0) make_step(node, step, node->mean);
        scale(node->message, node->w, n, node->count);
        return;
    case AT_MIX_PW: scale(node->message, node->w, n, node->count); return;
    case AT_MIX_DA:
        for (size_t i = 0; i < n; i++)
            node->message[i] = (float)node->count * (node->dual[i] + node->mean[i]);
        return;
    }
    assert(!"a form");
}

/* Nobody near has any samples: there is nothing to divide by, and nothing new. */
static bool is_empty(const at_gossip_node *node)
{
    return !(node->count > 0);
}

double at_gossip_end(at_gossip_node *node, const at_gossip_step *step)
{
    size_t n = node->params;
    double lr = at_gossip_rate(node->updater.learning, step);
    if (is_empty(node)) return lr;
    double each = 1 / node->count;
    switch (step->form) {
    case AT_MIX_PG:
        scale(node->mean, node->message, n, each);
        return make_step(node, step, node->mean);
    case AT_MIX_PWG: scale(node->w, node->message, n, each); return lr;
    case AT_MIX_PW:
        scale(node->w, node->message, n, each);
        if (node->samples == 0) return lr;
        if (!step->equal) scale(node->mean, node->mean, n, node->samples * each);
        return make_step(node, step, node->mean);
    case AT_MIX_DA:
        scale(node->dual, node->message, n, each);
        for (size_t i = 0; i < n; i++) node->w[i] = node->start[i] - (float)lr * node->dual[i];
        return lr;
    }
    assert(!"a form");
    return lr;
}

double at_gossip_average(float *to, size_t params, const at_gossip_part *parts, uint32_t count)
{
    enum { BLOCK = 1024 };
    double mixed = 0;
    assert(count >= 1);
    for (size_t at = 0; at < params; at += BLOCK) {
        size_t n = params - at < BLOCK ? params - at : BLOCK;
        for (uint32_t k = 0; k < count; k++) {
            const float *from = parts[k].message + at;
            float        weight = (float)parts[k].weight;
            float       *out = to + at;
            if (k == 0)
                for (size_t i = 0; i < n; i++) out[i] = weight * from[i];
            else
                for (size_t i = 0; i < n; i++) out[i] += weight * from[i];
        }
    }
    /* The weights of the vector are floats, and both need the same ones. */
    for (uint32_t k = 0; k < count; k++) mixed += (double)(float)parts[k].weight * parts[k].count;
    return mixed;
}

/* ---- all nodes ------------------------------------------------------------------------------- */

enum { BLOCK_FLOATS = 512 };

at_err at_gossip_power_init(at_gossip_power *power, uint32_t nodes, at_fail *fail)
{
    assert(nodes >= 1);
    *power = (at_gossip_power){.nodes = nodes};
    if (nodes > AT_GOSSIP_POWER_NODES_MAX)
        return at_fail_set(fail, AT_ERR_USAGE, "use fewer workers, or simulate time only",
                           "gossip with real gradients is limited to %d simulated workers",
                           AT_GOSSIP_POWER_NODES_MAX);
    power->weight = calloc((size_t)nodes * nodes, sizeof *power->weight);
    power->block = calloc((size_t)nodes * BLOCK_FLOATS, sizeof *power->block);
    power->vectors = calloc((size_t)nodes * 3, sizeof *power->vectors);
    if (power->weight && power->block && power->vectors) return AT_OK;
    at_gossip_power_deinit(power);
    return at_fail_memory_for(fail, "to average %u workers", nodes);
}

void at_gossip_power_deinit(at_gossip_power *power)
{
    free(power->weight);
    free(power->block);
    free(power->vectors);
    *power = (at_gossip_power){0};
}

/* The j-th unit vector after these rounds, or after `each`, one number per node: column j of the
 * matrix of the whole averaging. */
static const double *mix_unit(at_gossip_power *power, const at_graph *graph, uint32_t j,
                              uint32_t rounds, const uint32_t *each)
{
    uint32_t n = power->nodes;
    double  *unit = power->vectors, *mixed = unit + n, *scratch = unit + 2 * (size_t)n;
    assert(graph->nodes == n);
    memset(unit, 0, n * sizeof *unit);
    unit[j] = 1;
    if (each)
        at_graph_mix_unequal(graph, each, unit, mixed, scratch);
    else
        at_graph_mix(graph, rounds, unit, mixed, scratch);
    return mixed;
}

/* A power of a symmetric matrix is symmetric: column j is row j as well. */
void at_gossip_power_set(at_gossip_power *power, const at_graph *graph, uint32_t rounds)
{
    uint32_t n = power->nodes;
    for (uint32_t j = 0; j < n; j++) {
        const double *column = mix_unit(power, graph, j, rounds, NULL);
        for (uint32_t i = 0; i < n; i++) power->weight[(size_t)j * n + i] = (float)column[i];
    }
}

void at_gossip_power_set_unequal(at_gossip_power *power, const at_graph *graph,
                                 const uint32_t *rounds)
{
    uint32_t n = power->nodes;
    for (uint32_t j = 0; j < n; j++) {
        const double *column = mix_unit(power, graph, j, 0, rounds);
        for (uint32_t i = 0; i < n; i++) power->weight[(size_t)i * n + j] = (float)column[i];
    }
}

/* When round `round` of node i ends: its message is sent, and those of its neighbors that make
 * this round, too, are there. */
static at_ns end_of_round(const at_graph *graph, uint32_t i, const at_ns *sends, const at_ns *begin,
                          const uint32_t *rounds, uint32_t round)
{
    at_ns end = begin[i] + sends[i];
    for (uint32_t k = graph->first[i]; k < graph->first[i + 1]; k++) {
        uint32_t j = graph->neighbour[k];
        if (!graph->present[j] || rounds[j] < round) continue;
        if (begin[j] + sends[j] > end) end = begin[j] + sends[j];
    }
    return end;
}

at_ns at_gossip_rounds_in_time(const at_graph *graph, const at_ns *sends, at_ns time,
                               uint32_t *rounds, at_ns *scratch)
{
    uint32_t n = graph->nodes, active = n;
    at_ns   *begin = scratch, *end = begin + n, *took = end + n, last = 0;
    assert(time > 0);
    memset(scratch, 0, 3 * (size_t)n * sizeof *scratch);
    memcpy(took, sends, n * sizeof *took);
    for (uint32_t i = 0; i < n; i++) rounds[i] = UINT32_MAX; /* until it is known */
    for (uint32_t round = 1; active > 0; round++) {
        active = 0;
        for (uint32_t i = 0; i < n; i++) {
            if (rounds[i] != UINT32_MAX) continue;
            bool alone = !graph->present[i] || graph->degree[i] == 0;
            bool is_last = alone || begin[i] + 2 * took[i] > time;
            if (is_last || round == AT_MIX_ROUNDS_MAX) rounds[i] = round;
            active += rounds[i] == UINT32_MAX;
        }
        for (uint32_t i = 0; i < n; i++)
            if (rounds[i] >= round) end[i] = end_of_round(graph, i, sends, begin, rounds, round);
        for (uint32_t i = 0; i < n; i++) {
            if (rounds[i] < round || !graph->present[i]) continue;
            took[i] = end[i] - begin[i];
            begin[i] = end[i];
            if (end[i] > last) last = end[i];
        }
    }
    return last;
}

/* to = sum over j of weight[j] * row j of `block`, added in this order. */
AT_VECTORIZED static void mix_row(float *restrict to, const float *restrict block,
                                  const float *weight, uint32_t rows, size_t count)
{
    for (size_t k = 0; k < count; k++) to[k] = 0;
    for (uint32_t j = 0; j < rows; j++) {
        const float *restrict from = block + (size_t)j * BLOCK_FLOATS;
        if (weight[j] == 0) continue;
        for (size_t k = 0; k < count; k++) to[k] += weight[j] * from[k];
    }
}

/* Rows of `block` are the nodes' old values; writes the new ones into their messages. */
static void mix_block(const at_gossip_power *power, at_gossip_node *nodes, size_t at, size_t count)
{
    uint32_t n = power->nodes;
    for (uint32_t i = 0; i < n; i++)
        memcpy(power->block + (size_t)i * BLOCK_FLOATS, nodes[i].message + at,
               count * sizeof(float));
    for (uint32_t i = 0; i < n; i++)
        mix_row(nodes[i].message + at, power->block, power->weight + (size_t)i * n, n, count);
}

void at_gossip_power_mix(at_gossip_power *power, at_gossip_node *nodes, size_t params)
{
    uint32_t n = power->nodes;
    assert(power->weight);
    for (size_t at = 0; at < params; at += BLOCK_FLOATS) {
        size_t left = params - at;
        mix_block(power, nodes, at, left < BLOCK_FLOATS ? left : BLOCK_FLOATS);
    }
    for (uint32_t i = 0; i < n; i++) { /* `block` is free now; counts fit into its first rows */
        double mixed = 0;
        for (uint32_t j = 0; j < n; j++)
            mixed += (double)power->weight[(size_t)i * n + j] * nodes[j].count;
        power->block[i] = (float)mixed;
    }
    for (uint32_t i = 0; i < n; i++) nodes[i].count = power->block[i];
}

/* ---- looking at all of them ------------------------------------------------------------------ */

enum { MEAN_FLOATS = 1024 };

AT_VECTORIZED static void add_values(double *restrict sum, const float *restrict w, size_t n)
{
    for (size_t k = 0; k < n; k++) sum[k] += w[k];
}

AT_VECTORIZED static void add_squares(double *restrict sum, const float *restrict w,
                                      const double *restrict middle, size_t n)
{
    for (size_t k = 0; k < n; k++) sum[k] += (w[k] - middle[k]) * (w[k] - middle[k]);
}

double at_gossip_mean(float *mean, const float *const *w, const bool *present, uint32_t nodes,
                      size_t params)
{
    uint32_t count = 0;
    double   distance2 = 0, middle[MEAN_FLOATS], squares[MEAN_FLOATS];
    for (uint32_t i = 0; i < nodes; i++) count += present[i];
    assert(count >= 1);
    for (size_t at = 0; at < params; at += MEAN_FLOATS) {
        size_t n = params - at < MEAN_FLOATS ? params - at : MEAN_FLOATS;
        memset(middle, 0, sizeof middle);
        memset(squares, 0, sizeof squares);
        for (uint32_t i = 0; i < nodes; i++)
            if (present[i]) add_values(middle, w[i] + at, n);
        for (size_t k = 0; k < n; k++) mean[at + k] = (float)(middle[k] /= count);
        for (uint32_t i = 0; i < nodes; i++)
            if (present[i]) add_squares(squares, w[i] + at, middle, n);
        for (size_t k = 0; k < n; k++) distance2 += squares[k];
    }
    return sqrt(distance2 / count);
}
