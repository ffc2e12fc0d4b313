/* message.h - what hub and workers of the MPI world say to each other, as bytes.
 *
 *     hub ──mail──► worker      head │ parameters, if any │ orders, one after the other
 *     worker ──report──► hub    head │ gradient
 *     worker ──note──► hub      who I am, I am ready, I am alive, I have left
 *
 * One message a round each way: mail brings an order together with the parameters it is about, and
 * a report comes with its gradient. Mail is the same bytes for everybody who gets it: each order
 * says whom it is for. So it is sent from where the parameters are, to all at once.
 *
 * All numbers are little-endian and at fixed places. Lengths are counted in units of four bytes,
 * which is also what a float takes.
 */
#ifndef AT_MESSAGE_MESSAGE_H
#define AT_MESSAGE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/usage.h"
#include "step/event.h"

enum {
    AT_MESSAGE_UNIT = 4,
    AT_HUB_MESSAGE_HEAD = 64, /* bytes; vectors behind heads begin on cache lines */
    AT_ORDER_MESSAGE = 48,
    AT_REPORT_MESSAGE_HEAD = 128,
    AT_WORKER_NOTE = 1280,
    AT_MPI_HOST = 64, /* with its final zero, as those below */
    AT_MPI_NAME = 32
};

typedef enum at_hub_message_kind {
    AT_HUB_MESSAGE_WELCOME, /* start with these numbers */
    AT_HUB_MESSAGE_WORK,    /* parameters, orders, or both */
    AT_HUB_MESSAGE_PULSE,   /* the hub is alive */
    AT_HUB_MESSAGE_BYE      /* end */
} at_hub_message_kind;

/* The head of mail. */
typedef struct at_hub_message {
    at_hub_message_kind kind;
    uint64_t version; /* WORK: of the parameters inside, AT_VERSION_NONE: there are none */
    /* WELCOME */
    uint32_t incarnation;
    uint64_t sequence, drawn; /* see at_worker_loop_start */
    int64_t  pid;             /* of the hub, whose host's name follows the head */
    uint64_t born;
    at_ns    usage_every; /* as in the scene: workers do not know what is kept */
    /* BYE */
    bool together; /* everybody is there: end MPI together */
} at_hub_message;

/* An order and whom it is for. */
typedef struct at_order_message {
    at_node  worker;
    at_order order;
} at_order_message;

/* The head of a report. */
typedef struct at_report_message {
    at_report report;
    uint64_t  drawn;  /* by this worker so far */
    uint64_t  floats; /* of gradient that follow */
} at_report_message;

typedef enum at_worker_note_kind {
    AT_WORKER_NOTE_HELLO, /* I am here, or cannot be: see `fail` */
    AT_WORKER_NOTE_READY, /* my engine is loaded */
    AT_WORKER_NOTE_PULSE, /* I am alive */
    AT_WORKER_NOTE_LEFT   /* I was told to leave and have sent all I had */
} at_worker_note_kind;

typedef struct at_worker_note {
    at_worker_note_kind kind;
    uint64_t            drawn;
    uint64_t            reports; /* LEFT: how many were sent in all */
    /* HELLO */
    int64_t  pid;
    uint64_t born;        /* when the process began, in the kernel's own count */
    uint64_t fingerprint; /* a hash over program, model and data, in which all agree */
    char     host[AT_MPI_HOST];
    at_fail  fail;
    /* READY */
    char engine[AT_MPI_NAME];
    /* PULSE and LEFT: what the process has taken; pid 0: not told */
    at_usage usage;
} at_worker_note;

/* Writes the head of mail, AT_HUB_MESSAGE_HEAD bytes. */
void at_message_put_hub(void *bytes, const at_hub_message *mail);
/* Reads it; false: these bytes are no mail. */
bool at_message_get_hub(const void *bytes, at_hub_message *mail);

/* Writes an order, AT_ORDER_MESSAGE bytes. */
void at_message_put_order(void *bytes, const at_order_message *order);
/* Reads it. */
void at_message_get_order(const void *bytes, at_order_message *order);

/* Writes the head of a report, AT_REPORT_MESSAGE_HEAD bytes. */
void at_message_put_report(void *bytes, const at_report_message *report);
/* Reads it; false: these bytes are no report. */
bool at_message_get_report(const void *bytes, at_report_message *report);

/* Writes a note; returns the units that it takes, at most AT_WORKER_NOTE bytes. */
size_t at_message_put_note(void *bytes, const at_worker_note *note);
/* Reads it; false: these bytes are no note. */
bool at_message_get_note(const void *bytes, at_worker_note *note);

#endif
