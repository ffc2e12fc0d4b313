/* message.h - the messages between hub and workers, as bytes.
 *
 *     hub ──hub message──► worker    head │ parameters, if any │ orders
 *     worker ──report──► hub         head │ gradient
 *     worker ──note──► hub           hello, ready, alive, left
 *     rank ──turn──► all ranks       without a hub: report, time, and what all must agree on
 *     worker ──vector──► neighbor    under gossip: head │ what is averaged; to the hub: parameters
 *
 * One message per round in each direction: a hub message carries an order together with the
 * parameters to start from, and a report carries its gradient. All receivers of a hub message get
 * the same bytes, since each order names its worker: the message is sent directly from where the
 * parameters are stored, without a copy per worker.
 *
 * All numbers are little-endian at fixed offsets. Lengths are counted in units of four bytes, the
 * size of a float.
 *
 * Bytes from a peer may be anything. Reading checks everything that can be told from the message
 * alone: its length, magic number and kind, counts and durations within sane limits, texts without
 * control characters. What depends on the run is checked by at_report_message_check and
 * at_order_message_check. Nothing here asserts on what a peer sent: a bad message is an at_err, and
 * *fail says what is wrong with it, to be put behind the name of its sender.
 *
 * The first message in each direction (HELLO, WELCOME) begins with the version of this protocol;
 * whoever speaks another one is refused before anything else is read.
 */
#ifndef AT_MESSAGE_MESSAGE_H
#define AT_MESSAGE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/usage.h"
#include "step/event.h"

/* Increases with every change of a message. */
enum { AT_PROTOCOL = 7 };

/* Counts in messages (samples drawn, rounds, versions) are below this, so that sums over all
 * workers cannot overflow. */
#define AT_MESSAGE_COUNT_MAX (UINT64_C(1) << 46)

enum { /* sizes in bytes */
       AT_MESSAGE_UNIT = 4,
       AT_HUB_MESSAGE_HEAD = 64, /* so that the vector after it begins on a cache line */
       AT_ORDER_MESSAGE = 56,
       AT_REPORT_MESSAGE_HEAD = 128,
       AT_TURN_MESSAGE = 288,
       AT_VECTOR_MESSAGE_HEAD = 64, /* as that of a hub message */
       AT_WORKER_NOTE = 1280,
       AT_SEAT_NEWS = 48,
       AT_SEAT_WORD = 40,
       AT_HOST_NAME_SIZE = 64, /* including the final zero, as the next one */
       AT_ENGINE_NAME_SIZE = 32
};

/* What all ranks of a job must agree on, as a hash per part. Names are part of error messages. */
#define AT_JOB_PART_MAP(X)                \
    X(PROGRAM, "program version")         \
    X(MODEL, "model")                     \
    X(DATA, "data")                       \
    X(LAYOUT, "vector units")             \
    X(RANKS, "mix rule or workers")       \
    X(RULES, "rules")                     \
    X(NUMBERS, "numbers of the rules")    \
    X(BATCH, "batch")                     \
    X(MICRO_BATCH, "micro-batch")         \
    X(OPTIMIZER, "optimizer")             \
    X(RATE, "learning rate")              \
    X(SCHEDULE, "learning-rate schedule") \
    X(SEED, "seed")                       \
    X(LIMITS, "limits of the run")        \
    X(EVENTS, "evaluations")              \
    X(COMPRESS, "compression")
typedef enum at_job_part {
#define X(id, text) AT_JOB_##id,
    AT_JOB_PART_MAP(X)
#undef X
        AT_JOB_PARTS
} at_job_part;

typedef enum at_hub_message_kind {
    AT_HUB_MESSAGE_WELCOME, /* initial values for a worker that joins */
    AT_HUB_MESSAGE_WORK,    /* parameters, orders, or both */
    AT_HUB_MESSAGE_PULSE,   /* the hub is alive */
    AT_HUB_MESSAGE_BYE,     /* the run has ended */
    AT_HUB_MESSAGE_MIX,     /* gossip: average with the neighbors */
    AT_HUB_MESSAGE_COLLECT, /* gossip: the hub wants a worker's own parameters */
    AT_HUB_MESSAGE_GONE     /* gossip: a worker is lost, do not wait for it */
} at_hub_message_kind;

/* The head of a hub message. */
typedef struct at_hub_message {
    at_hub_message_kind kind;
    /* WORK: of the parameters that follow, AT_VERSION_NONE without any. MIX: the step that this
     * averaging makes. COLLECT: of the parameters that are wanted. */
    uint64_t version;
    /* WORK: instead of all parameters, `rows` pairs of an index and a value may follow: what has
     * changed since version `base`. AT_VERSION_NONE: all of them follow. */
    uint64_t base, rows;
    /* WELCOME */
    uint32_t protocol; /* AT_PROTOCOL; set by writing */
    uint32_t incarnation;
    uint64_t sequence, drawn, redrawn; /* see at_driver_options */
    int64_t  pid;                      /* of the hub; its host name follows the head */
    uint64_t born;
    at_ns    usage_every; /* resource sampling interval, which only the hub knows */
    /* BYE */
    bool   together; /* no process was lost: all of them shut the transport down together */
    at_err err;      /* why the run failed, the exit code of all its processes */
    /* MIX: who takes part follows the head, one bit per worker */
    uint64_t used; /* samples of all steps before this one */
    double   lr_factor;
    bool     counts; /* the receiver's last round is part of the step */
    /* GONE */
    at_node worker;
} at_hub_message;

/* An order and the worker it is for. */
typedef struct at_order_message {
    at_node  worker;
    at_order order;
} at_order_message;

/* The head of a report. */
typedef struct at_report_message {
    at_report report;
    uint64_t  drawn;  /* samples drawn by this worker so far */
    uint64_t  floats; /* units of the gradient that follows: floats, unless it is compressed */
} at_report_message;

/* An evaluation that one rank tells the others; see at_score for the numbers. */
typedef struct at_turn_score {
    uint64_t step;
    at_ns    at;
    double   loss_sum, auc;
    uint64_t correct, correct_top5, count;
    uint32_t classes;
} at_turn_score;

/* What each rank tells all others after a round, when there is no hub: its report (the gradient
 * goes another way, so `floats` is 0) and what must be the same everywhere. */
typedef struct at_turn_message {
    at_report_message report;
    at_ns             now;            /* on the clock of rank 0 */
    uint64_t          version, trace; /* of its hub */
    uint64_t          hash;           /* of its parameters; 0: not computed in this round */
    bool              stops;          /* it was told to stop the run */
    bool              has_score;      /* of rank 0: */
    at_turn_score     score;
    char              engine[AT_ENGINE_NAME_SIZE];
} at_turn_message;

/* The head of a vector that workers exchange under gossip, or send to the hub. */
typedef struct at_vector_message {
    uint64_t version; /* of parameters; between neighbors: the step that the averaging makes */
    uint32_t round;   /* of averaging, from 1; to the hub: 0 */
    bool     last;    /* the sender's last round of this step */
    double   count;   /* is averaged with the vector */
    uint64_t floats;  /* size of the vector that follows */
} at_vector_message;

typedef enum at_worker_note_kind {
    AT_WORKER_NOTE_HELLO, /* the process has started, or could not: see `fail` */
    AT_WORKER_NOTE_READY, /* its engine is loaded */
    AT_WORKER_NOTE_PULSE, /* it is alive */
    AT_WORKER_NOTE_LEFT   /* it was ordered to leave and has sent everything */
} at_worker_note_kind;

typedef struct at_worker_note {
    at_worker_note_kind kind;
    uint64_t            drawn;   /* samples drawn by this worker so far */
    uint64_t            reports; /* LEFT: total sent */
    /* HELLO */
    int64_t  pid;
    uint64_t born;               /* start time of the process, in kernel ticks */
    uint32_t protocol;           /* AT_PROTOCOL; set by writing */
    uint64_t part[AT_JOB_PARTS]; /* hashes, equal in all processes of a run */
    char     host[AT_HOST_NAME_SIZE];
    at_fail  fail;
    /* READY */
    char engine[AT_ENGINE_NAME_SIZE];
    /* PULSE and LEFT: resource usage of the process; pid 0: not sampled */
    at_usage usage;
    bool     averages; /* PULSE: it is averaging with its neighbors (gossip) */
} at_worker_note;

/* What a hub tells a seat on another machine besides orders and parameters: who is there, what it
 * has read, what it asks for. All of it, whenever something has changed. */
typedef struct at_seat_news {
    uint32_t present, first_rank;
    uint64_t samples_used;
    uint64_t taken, scores_taken; /* reports and evaluations of this seat that were read */
    uint64_t publish;             /* requests for its parameters */
    bool     leave, evicted;
} at_seat_news;

/* What such a seat tells its hub besides reports. */
typedef struct at_seat_word {
    uint64_t drawn;          /* samples drawn so far */
    bool     aside, left;    /* it does something else; it has gone for good */
    bool     scored;         /* an evaluation follows: */
    uint64_t version;        /* of the parameters */
    double   accuracy, loss; /* NAN: not measured */
} at_seat_word;

/* The head of a hub message, AT_HUB_MESSAGE_HEAD bytes of at least `size`. A WELCOME is followed by
 * the host name of the hub: at_hub_message_host. */
void   at_hub_message_write(void *bytes, const at_hub_message *message);
at_err at_hub_message_read(const void *bytes, size_t size, at_hub_message *message, at_fail *fail);

/* The host name behind the head of a WELCOME of `size` bytes, AT_HOST_NAME_SIZE bytes. */
at_err at_hub_message_host(const void *bytes, size_t size, char host[AT_HOST_NAME_SIZE],
                           at_fail *fail);

/* Who takes part in an averaging, behind the head of a MIX: bit i-1 is worker i. */
size_t at_mix_message_size(uint32_t workers); /* of the whole message, in bytes */
void   at_mix_message_write(void *bytes, const at_hub_message *message, const bool *present,
                            uint32_t workers);
at_err at_mix_message_read(const void *bytes, size_t size, bool *present, uint32_t workers,
                           at_fail *fail);

/* An order, AT_ORDER_MESSAGE bytes of at least `size`. */
void   at_order_message_write(void *bytes, const at_order_message *message);
at_err at_order_message_read(const void *bytes, size_t size, at_order_message *message,
                             at_fail *fail);

/* The head of a report, AT_REPORT_MESSAGE_HEAD bytes. Reading is given all of the message: its
 * `size` is that of the head and the floats. */
void   at_report_message_write(void *bytes, const at_report_message *message);
at_err at_report_message_read(const void *bytes, size_t size, at_report_message *message,
                              at_fail *fail);

/* A turn, AT_TURN_MESSAGE bytes of at least `size`. */
void   at_turn_message_write(void *bytes, const at_turn_message *message);
at_err at_turn_message_read(const void *bytes, size_t size, at_turn_message *message,
                            at_fail *fail);

/* The head of a vector, AT_VECTOR_MESSAGE_HEAD bytes. Reading is given the `size` of the whole
 * message, and expects `floats` floats of this `version` and `round`. */
void   at_vector_message_write(void *bytes, const at_vector_message *message);
at_err at_vector_message_read(const void *bytes, size_t size, const at_vector_message *expected,
                              at_vector_message *message, at_fail *fail);

/* A note, at most AT_WORKER_NOTE bytes. Writing returns its size in units; reading accepts more
 * than that, since notes are also exchanged at full length. */
size_t at_worker_note_write(void *bytes, const at_worker_note *note);
at_err at_worker_note_read(const void *bytes, size_t size, at_worker_note *note, at_fail *fail);

/* News, AT_SEAT_NEWS bytes, and words, AT_SEAT_WORD bytes, of at least `size`. */
void   at_seat_news_write(void *bytes, const at_seat_news *news);
at_err at_seat_news_read(const void *bytes, size_t size, at_seat_news *news, at_fail *fail);
void   at_seat_word_write(void *bytes, const at_seat_word *word);
at_err at_seat_word_read(const void *bytes, size_t size, at_seat_word *word, at_fail *fail);

/* What the next report of a worker can be, at this point of the run. */
typedef struct at_report_bounds {
    uint32_t incarnation;
    uint64_t sequence;    /* of its previous report */
    uint64_t version;     /* newest parameters that there are */
    uint32_t samples_max; /* of a round */
    uint64_t drawn;       /* samples of all its reports so far */
    uint64_t floats;      /* units of a gradient */
    bool     sparse;      /* it may also have fewer */
    bool     ends;        /* the run ends: a round may have been cut before its first sample */
    bool     again;       /* workers may start rounds by themselves */
} at_report_bounds;

/* Checks a report against what it can be. */
at_err at_report_message_check(const at_report_message *message, const at_report_bounds *bounds,
                               at_fail *fail);

/* Checks an order other than `leave` against the largest number of samples of a round and the
 * newest parameters that this worker has (AT_VERSION_NONE: none). */
at_err at_order_message_check(const at_order_message *message, uint32_t samples_max,
                              uint64_t version, at_fail *fail);

/* Checks that the parameters of a WORK message, if it has any, are not older than the newest that
 * this worker has (AT_VERSION_NONE: none). */
at_err at_params_message_check(const at_hub_message *message, uint64_t newest, at_fail *fail);

#endif
