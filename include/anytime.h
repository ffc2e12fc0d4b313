/* anytime.h - distributed training of your own model, with any strategy.
 *
 * You write one function that returns the SUM of the losses over samples [first, end) and ADDS the
 * SUM of their gradients to `gradient`. With sums instead of means, every worker is weighted by the
 * number of samples it computed. anytime calls the function in worker processes, once per
 * micro-batch.
 *
 *     static double loss(void *user, const float *params, float *gradient,
 *                        uint64_t first, uint64_t end);
 *
 *     at_own_model model = { .parameters = 11, .samples = 100000, .loss = loss };
 *     const char *options[] = { "--strategy", "amb", "--workers", "4", "--epochs", "3" };
 *     float params[11] = { 0 };
 *     at_answer answer;
 *     if (at_train(&model, params, 6, options, &answer)) fprintf(stderr, "%s\n", answer.message);
 *     at_answer_free(&answer);
 *
 * Link with -lanytime. Workers are forked from the calling process: they see your data as it was
 * when at_train was called, without copying it, and what they write to your memory is lost when
 * they exit. Each worker reads the samples in order, from its own starting point: shuffle them
 * first, or write `loss_at` instead, which is called with samples of a random order that is new in
 * every pass.
 *
 * Call it before your program starts threads: forked workers lack them, and would wait forever for
 * what a thread should do.
 *
 * Under mpirun or srun nothing is forked: all copies of the program are one run, in which rank 0 is
 * the hub and the others are workers. All of them call at_train with the same arguments, and all
 * get its answer and the trained parameters. MPI is shut down when the program exits.
 *
 * If your program has its own training loop (or calls PyTorch), take a seat instead: see below.
 */
#ifndef ANYTIME_H
#define ANYTIME_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Your model. Set unused members to zero. */
typedef struct at_own_model {
    void    *user;         /* passed to your functions */
    uint64_t parameters;   /* floats in the parameter vector, at least 1 */
    uint64_t samples;      /* number of training samples, one epoch */
    uint64_t test_samples; /* number of test samples; 0: no evaluation */
    /* Returns the sum of losses over training samples first .. end-1, and adds the sum of their
     * gradients to `gradient` (which may hold earlier sums). MUST NOT keep the pointers. */
    double (*loss)(void *user, const float *params, float *gradient, uint64_t first, uint64_t end);
    /* Optional, needed when test_samples > 0: returns the sum of losses over test samples
     * first .. end-1 and adds the number of correct predictions to *correct. */
    double (*test)(void *user, const float *params, uint64_t *correct, uint64_t first,
                   uint64_t end);
    const char *name; /* shown in results; NULL: "own" */
    /* Instead of `loss`: the same for `count` samples with these numbers. */
    double (*loss_at)(void *user, const float *params, float *gradient, const uint64_t *index,
                      uint64_t count);
} at_own_model;

/* The outcome of a training. */
typedef struct at_answer {
    int   code; /* 0 done; 1 failed; 2 invalid options; 65 a damaged file, 66 a missing one (--init,
                 --resume); 74 cannot write; 75 stopped early */
    char  message[1024]; /* the error with a hint; empty on success */
    char *result;        /* result.json as text; NULL if training did not start */
} at_answer;

/* Trains the model, starting from `params` and storing the trained parameters there. `options` are
 * `count` words as on the command line of `anytime train`; options for models and data are refused.
 * Writes nothing to disk without --run DIR. With --init FILE or --resume RUN it starts from the
 * weights of that file, or from the newest checkpoint of that run, instead of `params`.
 *
 * One call at a time per process: a second one, from another thread or from your own functions, is
 * refused (code 2). Returns answer->code. */
int at_train(const at_own_model *model, float *params, int count, const char *const *options,
             at_answer *answer);

/* Releases the memory of an answer. */
void at_answer_free(at_answer *answer);

/* "0.2.0" */
const char *at_version(void);

/* ---- seats: any program can be a worker --------------------------------------------------------
 *
 * A seat is a worker's place in a run, taken by a process (or a thread) that owns its training
 * loop: yours in C, Python, PyTorch on a GPU. Start the program with
 *
 *     anytime run -n 4 --strategy amb --epochs 3 -- ./program
 *
 * and it finds its hub in the environment. The loop of a worker:
 *
 *     at_seat      *seat = NULL;
 *     at_seat_order order;
 *     if (at_seat_join(&seat, NULL, &spec, &why) != AT_SEAT_JOINED) { ... why.message ... }
 *     while (at_seat_next(seat, &order) == AT_SEAT_WORK) {
 *         int      now;
 *         uint64_t at = order.position;
 *         do {
 *             add the SUM of the gradients of n samples, at the parameters at_seat_params(seat),
 *             to at_seat_gradient(seat)
 *             at += n;
 *             now = at_seat_more(seat, n, loss_sum);
 *         } while (now == AT_SEAT_MORE || now == AT_SEAT_REFRESHED);
 *         if (now == AT_SEAT_REPORT) at_seat_report(seat);
 *     }
 *     at_seat_leave(&seat);
 *
 * A micro-batch is what is computed between two calls of at_seat_more; its size is the program's.
 * A round is one or more of them, as the strategy says. All gradients and losses are SUMS over
 * samples, never means.
 *
 * Threads: a seat belongs to one thread at a time; two seats may be used by two threads of one
 * process. Nothing here prints, exits or handles signals. Statuses are plain ints: what is not
 * listed at a function is never returned by it. */

typedef struct at_seat at_seat;

typedef enum at_seat_status {
    AT_SEAT_JOINED = 1,    /* the seat is taken */
    AT_SEAT_ALONE = 2,     /* no hub is named: train as without anytime */
    AT_SEAT_WORK = 3,      /* a round begins: compute at least one micro-batch */
    AT_SEAT_MORE = 4,      /* continue with the next micro-batch of this round */
    AT_SEAT_REPORT = 5,    /* the round is complete: call at_seat_report, then at_seat_next */
    AT_SEAT_ABANDON = 6,   /* the round was given up and its gradient is discarded: at_seat_next */
    AT_SEAT_REFRESHED = 7, /* as MORE, but newer parameters were installed */
    AT_SEAT_DONE = 8,      /* the run is over and the parameters are final */
    AT_SEAT_EVICTED = 9,   /* the hub gave this worker up: it was silent for too long */
    AT_SEAT_LOST = 10,     /* the hub is gone */
    AT_SEAT_AGAIN = 11,    /* spec.wait_ms have passed or a signal came: call again */
    AT_SEAT_FAILED = 12    /* refused or impossible; the reason is given as text */
} at_seat_status;

/* Why a call failed. */
typedef struct at_seat_why {
    int32_t code;          /* exit code to use: 1 failed, 2 refused (token, spec, version) */
    char    message[1020]; /* the sentence with a hint; empty on success */
} at_seat_why;

enum { AT_SEAT_DIMS_MAX = 8, AT_SEAT_NAME_SIZE = 200, AT_SEAT_GROUPS_MAX = 16 };

/* What a tensor is. */
typedef enum at_seat_role {
    AT_SEAT_TRAINED = 0, /* a parameter: has a gradient, is updated by the optimizer */
    AT_SEAT_BUFFER = 1   /* a statistic of batch norm: a step makes it the mean of the reported
                          * values, each weighted by its samples */
} at_seat_role;

/* One tensor of the flat vector. Tensor i+1 begins where tensor i ends, without padding, row-major;
 * buffers come after all parameters. */
typedef struct at_seat_tensor {
    const char *name; /* unique, as it will be called in checkpoints */
    uint64_t    shape[AT_SEAT_DIMS_MAX];
    uint32_t    dims;  /* used entries of `shape`; 0: a scalar */
    uint32_t    role;  /* at_seat_role */
    uint32_t    group; /* of hyper-parameters, 0 .. groups-1; buffers: 0 */
} at_seat_tensor;

/* Hyper-parameters of a group of parameters, called as in PyTorch. What the optimizer does not use
 * is ignored. */
typedef struct at_seat_group {
    double  lr, weight_decay;
    double  momentum;     /* sgd, rmsprop */
    double  beta1, beta2; /* adam, adamw */
    double  eps;          /* adam, adamw, rmsprop, adagrad */
    double  alpha;        /* rmsprop */
    double  lr_decay;     /* adagrad */
    double  accumulator;  /* adagrad: initial value */
    int32_t nesterov;     /* sgd: 0 or 1 */
    int32_t unused;       /* 0 */
} at_seat_group;

/* Where parameters are updated. */
typedef enum at_seat_update {
    AT_SEAT_UPDATE_HUB = 0,   /* at the hub, by one of its optimizers */
    AT_SEAT_UPDATE_WORKER = 1 /* by each seat, with the mean gradient that the hub returns; needs
                               * a strategy that waits for all (gather all, release barrier) */
} at_seat_update;

/* What is trained. All seats of a run give the same spec, except for `params`, `rank` and
 * `wait_ms`; that of the lowest rank counts, and others are compared with it. Everything is copied
 * by at_seat_join, except `params` with `installs`. Zeroed members have their defaults. */
typedef struct at_seat_spec {
    const char           *model;   /* shown in results; NULL: "seat" */
    const at_seat_tensor *tensors; /* at least one parameter */
    uint32_t              tensors_count;
    uint32_t              update;    /* at_seat_update */
    const char           *optimizer; /* "sgd", "adam", "adamw", "rmsprop" or "adagrad"; NULL: sgd */
    const at_seat_group  *groups;    /* NULL: one, with PyTorch's defaults (sgd: lr 0.01) */
    uint32_t              groups_count;
    uint32_t              batch;   /* samples of a usual micro-batch, the default of --batch;
                                    * 0: 1 */
    uint64_t              samples; /* training samples, one epoch; 0: unknown */
    float                *params;  /* initial values of the flat vector; NULL: zeros */
    int32_t  installs;   /* 1: `params` stays in use. at_seat_join, at_seat_next and REFRESHED write
                        * the parameters there, and at_seat_params returns it. 0: the library keeps
                        * them, shared by all seats and read-only where the strategy allows that.
                        * 2: like 1, and `params` has whole pages (begins on one, and belongs to
                        * nothing else up to the end of its last one): where the strategy allows
                        * that, the hub's parameters are mapped there and nothing is copied. What
                        * the program writes there is gone with the next parameters, as with 1 */
    int32_t  rank;       /* -1: as in ANYTIME_RANK, otherwise any free one. 0: rank 0 */
    uint32_t wait_ms;    /* return AT_SEAT_AGAIN after waiting for this long, or for a signal;
                        * 0: wait for as long as it takes */
    uint32_t overwrites; /* 1: the first micro-batch of a round writes the whole gradient, which
                          * at_seat_next then does not zero */
} at_seat_spec;

/* Takes a seat. `hub` is the path of the hub's socket; NULL: the environment's ANYTIME_HUB, and
 * without that the program is alone (AT_SEAT_ALONE, *seat stays NULL). The token is read from the
 * file that ANYTIME_TOKEN_FILE names, otherwise from the file `token` beside the socket. Waits
 * until the hub knows what is trained: it takes the spec of rank 0 or, when that is not there
 * within 10 seconds, of the lowest rank present.
 *
 * *seat MUST be NULL at the first call. Returns JOINED, ALONE, AGAIN (call again with the same
 * arguments), LOST (nobody answers at `hub`) or FAILED; `why` has the reason for the last two. */
int at_seat_join(at_seat **seat, const char *hub, const at_seat_spec *spec, at_seat_why *why);

/* What to compute in a round. */
typedef struct at_seat_order {
    uint64_t version;     /* of the parameters: updates made so far */
    uint64_t position;    /* samples that this rank has drawn so far, including those of earlier
                           * holders of the seat: where to continue in the sequence of samples */
    uint32_t samples_max; /* the round ends at about this number of samples */
    int32_t  updated;     /* 1: a step was closed since this seat's last round */
    /* AT_SEAT_UPDATE_WORKER only; to be done in this order, whatever at_seat_next has returned: */
    int32_t install; /* 1: take parameters and state from at_seat_params and at_seat_state_get */
    int32_t apply;   /* 1: at_seat_mean has the mean gradient of a step: apply it once */
    int32_t publish; /* 1: the hub needs the parameters: at_seat_publish, at_seat_state_put; the
                      * next at_seat_next, at_seat_more or at_seat_leave says that all came */
    int32_t unused;
} at_seat_order;

/* Waits for the next round and installs its parameters. Sleeps of --straggler happen here. Returns
 * WORK, DONE, EVICTED, LOST or AGAIN. With updates at the workers, AGAIN is also returned without
 * spec.wait_ms, when another seat needs this one's parameters (order.publish). */
int at_seat_next(at_seat *seat, at_seat_order *order);

/* The installed parameters, flat. Valid until at_seat_leave; they change in at_seat_next, and in
 * at_seat_more when it returns REFRESHED. Unless spec.installs is set they MUST NOT be written. */
const float *at_seat_params(const at_seat *seat);

/* Where the gradient of this round is summed up: floats of the flat vector, 64-byte aligned, zeroed
 * by at_seat_next unless spec.overwrites is set. The address can change from round to round and is
 * valid until at_seat_report. Before at_seat_report, write the current VALUES of the buffers to
 * their places. */
float *at_seat_gradient(const at_seat *seat);

/* Call after each micro-batch: `samples` (at least 1) were computed, with this sum of losses. With
 * --sample-time it sleeps until that time is over. Returns MORE, REPORT, ABANDON, REFRESHED, DONE,
 * EVICTED, LOST or AGAIN; after AGAIN call it with samples 0. */
int at_seat_more(at_seat *seat, uint32_t samples, double loss_sum);

/* Hands the round over to the hub; call it after REPORT. Does not wait for the step. */
void at_seat_report(at_seat *seat);

/* Ends the use of a seat; before DONE, the worker leaves the run and is not replaced. Accepts a
 * pointer to NULL and sets it to NULL. A process that ends without this call has crashed, for the
 * hub, unless it exits with 0. */
void at_seat_leave(at_seat **seat);

/* ---- facts about a seat ---- */

typedef struct at_seat_facts {
    uint32_t rank;          /* counts from 0 */
    uint32_t workers;       /* present now */
    uint32_t workers_start; /* expected by the hub (-n) */
    int32_t  first;         /* 1: the lowest rank present: prints, evaluates, sets the numbers */
    uint64_t version;       /* of the newest parameters at the hub */
    uint64_t seed;          /* of the run */
    uint64_t samples_used;  /* by all steps so far */
    uint64_t samples;       /* of an epoch; 0: unknown */
    uint64_t floats;        /* of the flat vector */
    uint64_t drawn;         /* by this rank */
} at_seat_facts;

/* Fills in the facts as of now; after at_seat_join. */
void at_seat_facts_get(const at_seat *seat, at_seat_facts *facts);

/* A random number for this seat, a function of the run's seed, its rank and `position` only. */
uint64_t at_seat_random(const at_seat *seat, uint64_t position);

/* The sample to draw at `position`: walks random permutations of 0 .. samples-1, one per pass, that
 * are different for every rank. `samples` is at least 1. */
uint64_t at_seat_sample(const at_seat *seat, uint64_t position, uint64_t samples);

/* ---- beside the gradients ---- */

/* Sets the hyper-parameters of a group. Those of the first seat travel with its next report and
 * bind everybody from that step on; from other seats they are ignored. `group` counts from 0. */
void at_seat_group_set(at_seat *seat, uint32_t group, const at_seat_group *values);

/* An evaluation of the parameters of `version`, for curves and --target. What was not measured is
 * NAN. Only those of the first seat count. */
void at_seat_evaluated(at_seat *seat, uint64_t version, double accuracy, double loss);

/* Between at_seat_aside(seat, 1) and (seat, 0) the seat does something else (evaluation, saving):
 * the round's clock stands still, and the hub does not evict it. */
void at_seat_aside(at_seat *seat, int begins);

/* Named tensors that the hub keeps for the seats: integer buffers, the state of an optimizer. The
 * hub has one value per name, the last put by the first seat. A checkpoint can hold four times the
 * size of the parameters plus 32 MB of them; a program that puts more than four times as much is
 * disconnected. 0, or -1 when the hub is gone or the name or the size is impossible. */
int at_seat_state_put(at_seat *seat, const char *name, const float *values, uint64_t count);

/* Copies at most `max` floats of a named tensor; returns its size, or -1: there is none. */
int64_t at_seat_state_get(at_seat *seat, const char *name, float *values, uint64_t max);

/* The name of the index-th tensor that the hub keeps, counted from 0; 0, or -1: there are fewer. */
int at_seat_state_name(at_seat *seat, uint32_t index, char name[AT_SEAT_NAME_SIZE]);

/* AT_SEAT_UPDATE_WORKER: the mean gradient of the step to apply (order.apply); buffers hold their
 * mean values. Valid until at_seat_report. */
const float *at_seat_mean(const at_seat *seat);

/* AT_SEAT_UPDATE_WORKER: hands this seat's parameters (flat, updates applied) to the hub. */
void at_seat_publish(at_seat *seat, const float *params);

#ifdef __cplusplus
}
#endif

#endif
