/* message.h - the messages between hub and workers, as bytes.
 *
 *     hub ──hub message──► worker    head │ parameters, if any │ orders
 *     worker ──report──► hub         head │ gradient
 *     worker ──note──► hub           hello, ready, alive, left
 *
 * One message per round in each direction: a hub message carries an order together with the
 * parameters to start from, and a report carries its gradient. All receivers of a hub message get
 * the same bytes, since each order names its worker: the message is sent directly from where the
 * parameters are stored, without a copy per worker.
 *
 * All numbers are little-endian at fixed offsets. Lengths are counted in units of four bytes, the
 * size of a float.
 */
#ifndef AT_MESSAGE_MESSAGE_H
#define AT_MESSAGE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/usage.h"
#include "step/event.h"

enum { /* sizes in bytes */
       AT_MESSAGE_UNIT = 4,
       AT_HUB_MESSAGE_HEAD = 64, /* so that the vector after it begins on a cache line */
       AT_ORDER_MESSAGE = 48,
       AT_REPORT_MESSAGE_HEAD = 128,
       AT_WORKER_NOTE = 1280,
       AT_HOST_NAME_SIZE = 64, /* including the final zero, as the next one */
       AT_ENGINE_NAME_SIZE = 32
};

typedef enum at_hub_message_kind {
    AT_HUB_MESSAGE_WELCOME, /* initial values for a worker that joins */
    AT_HUB_MESSAGE_WORK,    /* parameters, orders, or both */
    AT_HUB_MESSAGE_PULSE,   /* the hub is alive */
    AT_HUB_MESSAGE_BYE      /* the run has ended */
} at_hub_message_kind;

/* The head of a hub message. */
typedef struct at_hub_message {
    at_hub_message_kind kind;
    uint64_t version; /* WORK: of the parameters that follow, AT_VERSION_NONE without any */
    /* WELCOME */
    uint32_t incarnation;
    uint64_t sequence, drawn; /* see at_worker_loop_start */
    int64_t  pid;             /* of the hub; its host name follows the head */
    uint64_t born;
    at_ns    usage_every; /* resource sampling interval, which only the hub knows */
    /* BYE */
    bool together; /* no process was lost: all of them shut the transport down together */
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
    uint64_t  floats; /* size of the gradient that follows */
} at_report_message;

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
    uint64_t born;        /* start time of the process, in kernel ticks */
    uint64_t fingerprint; /* hash of program, model and data, equal in all processes of a run */
    char     host[AT_HOST_NAME_SIZE];
    at_fail  fail;
    /* READY */
    char engine[AT_ENGINE_NAME_SIZE];
    /* PULSE and LEFT: resource usage of the process; pid 0: not sampled */
    at_usage usage;
} at_worker_note;

/* The head of a hub message, AT_HUB_MESSAGE_HEAD bytes. Reading returns false for other bytes. */
void at_hub_message_write(void *bytes, const at_hub_message *message);
bool at_hub_message_read(const void *bytes, at_hub_message *message);

/* An order, AT_ORDER_MESSAGE bytes. */
void at_order_message_write(void *bytes, const at_order_message *message);
void at_order_message_read(const void *bytes, at_order_message *message);

/* The head of a report, AT_REPORT_MESSAGE_HEAD bytes. Reading returns false for other bytes. */
void at_report_message_write(void *bytes, const at_report_message *message);
bool at_report_message_read(const void *bytes, at_report_message *message);

/* A note, at most AT_WORKER_NOTE bytes. Writing returns its size in units; reading returns false
 * for other bytes. */
size_t at_worker_note_write(void *bytes, const at_worker_note *note);
bool   at_worker_note_read(const void *bytes, at_worker_note *note);

#endif
