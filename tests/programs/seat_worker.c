/* A program that takes a seat and behaves as its arguments say, for tests/e2e/seats*.py.
 *
 *     seat_worker [NAME=NUMBER ..]
 *
 * It fits y = x . w to exact values, so that the loss of a trained model is near 0. Rounds are
 * counted from 1 in this process; a fault at a round happens in the middle of it.
 */
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "anytime.h"

enum { FEATURES = 8, SAMPLES = 4096 };

static struct {
    const char *name;
    long        value;
} option[] = {{"batch", 16},     {"exit", 0},    {"code", 0},     {"abort", 0},   {"only", -1},
              {"join", 1},       {"stuck", 0},   {"print_mb", 0}, {"threads", 1}, {"evaluate", 0},
              {"extra", 0},      {"buffers", 0}, {"aside", 0},    {"slice", 0},   {"installs", 0},
              {"sgd", 1},        {"state", 0},   {"halve", 0},    {"stay", 0},    {"unleft", 0},
              {"samples", 4096}, {"odd", 0},     {"complain", 0}, {"update", 0},  {"hand_over", 0},
              {"nan", 0}};

static long get(const char *name)
{
    for (size_t i = 0; i < sizeof option / sizeof *option; i++)
        if (strcmp(option[i].name, name) == 0) return option[i].value;
    abort();
}

static void set(const char *word)
{
    const char *equals = strchr(word, '=');
    for (size_t i = 0; i < sizeof option / sizeof *option; i++)
        if (equals && strlen(option[i].name) == (size_t)(equals - word) &&
            strncmp(option[i].name, word, strlen(option[i].name)) == 0) {
            option[i].value = strtol(equals + 1, NULL, 10);
            return;
        }
    fprintf(stderr, "unknown option %s\n", word);
    exit(2);
}

/* ---- the model ------------------------------------------------------------------------------- */

static double add_sample(const float *w, float *gradient, uint64_t index)
{
    float x[FEATURES], error = w[FEATURES];
    for (int f = 0; f < FEATURES; f++) {
        uint64_t r = (index * FEATURES + (uint64_t)f + 1) * 0x9e3779b97f4a7c15u;
        x[f] = (float)((r ^ (r >> 31)) * 0xbf58476d1ce4e5b9u >> 40) / 8388608.0f - 1.0f;
        error += (w[f] - (float)(f + 1)) * x[f];
    }
    for (int f = 0; f < FEATURES; f++) gradient[f] += error * x[f];
    gradient[FEATURES] += error;
    return (double)error * error / 2;
}

/* Tensors of the flat vector: `extra` floats that have no influence make it large. */
enum { TENSORS_MAX = 4 };

static int fill_spec(at_seat_spec *spec, at_seat_tensor *tensors, at_seat_group *group)
{
    tensors[0] = (at_seat_tensor){.name = "layer.weight", .shape = {1, FEATURES}, .dims = 2};
    tensors[1] = (at_seat_tensor){.name = get("odd") ? "layer.odd" : "layer.bias", .dims = 0};
    tensors[2] =
        (at_seat_tensor){.name = "norm.mean", .shape = {2, 2}, .dims = 2, .role = AT_SEAT_BUFFER};
    tensors[3] = tensors[2];
    if (get("extra"))
        tensors[2] =
            (at_seat_tensor){.name = "extra", .shape = {(uint64_t)get("extra")}, .dims = 1};
    *group =
        (at_seat_group){.lr = get("sgd") ? 0.1 : 0.05, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
    *spec =
        (at_seat_spec){.model = "line",
                       .tensors = tensors,
                       .tensors_count = 2u + (get("extra") ? 1u : 0u) + (get("buffers") ? 1u : 0u),
                       .optimizer = get("sgd") ? "sgd" : "adam",
                       .update = (uint32_t)get("update"),
                       .groups = group,
                       .groups_count = 1,
                       .batch = (uint32_t)get("batch"),
                       .samples = (uint64_t)get("samples"),
                       .installs = (int)get("installs"),
                       .wait_ms = (uint32_t)get("slice"),
                       .rank = -1};
    if (get("installs"))
        spec->params = calloc(FEATURES + 1 + 4 + (size_t)get("extra"), sizeof(float));
    return 0;
}

/* ---- updates at the workers -------------------------------------------------------------------
 *
 * Momentum SGD with parameters and a velocity of its own, per thread. */

static _Thread_local float own[FEATURES + 1], velocity[FEATURES + 1];

static void update(at_seat *seat, const at_seat_order *order)
{
    if (order->install) {
        memcpy(own, at_seat_params(seat), sizeof own);
        if (at_seat_state_get(seat, "velocity", velocity, FEATURES + 1) < 0)
            memset(velocity, 0, sizeof velocity);
    }
    for (int i = 0; order->apply && i <= FEATURES; i++) {
        velocity[i] = 0.5f * velocity[i] + at_seat_mean(seat)[i];
        own[i] -= 0.1f * velocity[i];
    }
    if (order->publish) {
        at_seat_publish(seat, own);
        at_seat_state_put(seat, "velocity", velocity, FEATURES + 1);
    }
}

static const float *params_of(const at_seat *seat)
{
    return get("update") ? own : at_seat_params(seat);
}

/* ---- faults ---------------------------------------------------------------------------------- */

/* True when faults are for this process: of one rank, or of all. */
static int is_meant(const at_seat *seat)
{
    at_seat_facts facts;
    at_seat_facts_get(seat, &facts);
    return get("only") < 0 || facts.rank == (uint32_t)get("only");
}

static void misbehave(const at_seat *seat, long round)
{
    if (!is_meant(seat)) return;
    if (round == get("complain")) fprintf(stderr, "ValueError: a script has raised\n");
    if (round == get("exit")) exit((int)get("code"));
    if (round == get("abort")) raise(SIGKILL);
    while (round == get("stuck")) pause();
}

/* With hand_over=ROUND: one of them dies when it has reported that round, and the others do not end
 * it before its successor is there. The wait is bounded, because that may have happened already. */
static void wait_for_successor(const at_seat *seat, long round)
{
    at_seat_facts facts;
    bool          gone = false;
    if (round != get("hand_over") || is_meant(seat)) return;
    at_seat_facts_get(seat, &facts);
    for (int ms = 0; ms < 5000 && !(gone && facts.workers == facts.workers_start); ms++) {
        poll(NULL, 0, 1);
        at_seat_facts_get(seat, &facts);
        gone = gone || facts.workers < facts.workers_start;
    }
}

static void be_noisy(void)
{
    static char line[1024];
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = '\n';
    for (long i = 0; i < get("print_mb") * 1024; i++) fwrite(line, 1, sizeof line, stdout);
}

/* ---- training -------------------------------------------------------------------------------- */

/* What an order says about updates is done whatever the status is. */
static int next(at_seat *seat, at_seat_order *order)
{
    int status;
    do {
        status = at_seat_next(seat, order);
        if (get("update")) update(seat, order);
    } while (status == AT_SEAT_AGAIN);
    return status;
}

static int more(at_seat *seat, uint32_t samples, double loss)
{
    int status = at_seat_more(seat, samples, loss);
    while (status == AT_SEAT_AGAIN) status = at_seat_more(seat, 0, 0);
    return status;
}

/* Micro-batches until the round is over. Buffers get the rank, so that their mean is known. */
static int do_round(at_seat *seat, const at_seat_order *order, long round)
{
    uint64_t      at = order->position;
    uint32_t      batch = (uint32_t)get("batch");
    int           status = AT_SEAT_MORE;
    at_seat_facts facts;
    at_seat_facts_get(seat, &facts);
    while (status == AT_SEAT_MORE || status == AT_SEAT_REFRESHED) {
        double loss = 0;
        for (uint32_t i = 0; i < batch; i++)
            loss += add_sample(params_of(seat), at_seat_gradient(seat),
                               at_seat_sample(seat, at + i, SAMPLES));
        at += batch;
        misbehave(seat, round);
        if (round == get("nan") && is_meant(seat)) at_seat_gradient(seat)[2] = NAN;
        status = more(seat, batch, loss);
    }
    for (int i = 0; get("buffers") && status == AT_SEAT_REPORT && i < 4; i++)
        at_seat_gradient(seat)[FEATURES + 1 + get("extra") + i] = (float)facts.rank;
    return status;
}

static void evaluate(at_seat *seat, uint64_t version)
{
    at_seat_facts facts;
    float         unused[FEATURES + 1] = {0};
    double        loss = 0;
    at_seat_facts_get(seat, &facts);
    if (!facts.first) return;
    at_seat_aside(seat, 1);
    for (uint64_t i = 0; i < SAMPLES; i++) loss += add_sample(params_of(seat), unused, i);
    at_seat_aside(seat, 0);
    at_seat_evaluated(seat, version, NAN, loss / SAMPLES);
}

static int keep_state(at_seat *seat, uint64_t version)
{
    float         value = (float)version, back = -1;
    char          name[AT_SEAT_NAME_SIZE];
    at_seat_facts facts;
    at_seat_facts_get(seat, &facts);
    if (!facts.first) return 0;
    return at_seat_state_put(seat, "counter", &value, 1) != 0 ||
           at_seat_state_get(seat, "counter", &back, 1) != 1 || back != value ||
           at_seat_state_name(seat, 0, name) != 0 || strcmp(name, "counter") != 0 ||
           at_seat_state_name(seat, 1, name) != -1 ||
           at_seat_state_get(seat, "nothing", &back, 1) != -1;
}

static void halve_rate(at_seat *seat, at_seat_group *group, long round)
{
    if (round != get("halve")) return;
    group->lr /= 2;
    at_seat_group_set(seat, 0, group);
}

static void *train(void *unused)
{
    at_seat_tensor tensors[TENSORS_MAX];
    at_seat_group  group;
    at_seat_spec   spec;
    at_seat       *seat = NULL;
    at_seat_order  order;
    at_seat_why    why = {0};
    int            status;
    (void)unused;
    fill_spec(&spec, tensors, &group);
    do status = at_seat_join(&seat, NULL, &spec, &why);
    while (status == AT_SEAT_AGAIN);
    if (status == AT_SEAT_ALONE) {
        printf("alone\n");
        free(spec.params);
        return NULL;
    }
    if (status != AT_SEAT_JOINED) {
        fprintf(stderr, "%s\n", why.message);
        exit(why.code);
    }
    long round = 0;
    while ((status = next(seat, &order)) == AT_SEAT_WORK) {
        round++;
        halve_rate(seat, &group, round);
        if (get("evaluate") > 0 && round % get("evaluate") == 0) evaluate(seat, order.version);
        if (get("state") && keep_state(seat, order.version)) exit(3);
        if (get("stay") && round > get("stay")) break;
        wait_for_successor(seat, round);
        if (do_round(seat, &order, round) == AT_SEAT_REPORT) at_seat_report(seat);
        if (round == get("hand_over") && is_meant(seat)) raise(SIGKILL);
    }
    if (get("evaluate") && status == AT_SEAT_DONE) evaluate(seat, UINT64_MAX);
    printf("status %d weight %.4f\n", status, (double)params_of(seat)[1]);
    fflush(stdout);
    if (get("unleft")) exit(0);
    at_seat_leave(&seat);
    free(spec.params);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t other;
    for (int i = 1; i < argc; i++) set(argv[i]);
    be_noisy();
    if (!get("join")) {
        fprintf(stderr, "waiting for godot\n");
        for (;;) pause();
    }
    if (get("extra") && get("update")) return 2; /* its own parameters have no room for them */
    bool two = get("threads") == 2;
    if (two && pthread_create(&other, NULL, train, NULL) != 0) return 1;
    train(NULL);
    if (two) pthread_join(other, NULL);
    return (int)get("code");
}
