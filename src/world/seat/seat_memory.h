/* seat_memory.h - memory shared by the hub and the seats. Internal to world/seat.
 *
 *   parameters   board │ floats      one file; only the hub can write it
 *   bells        hub, cast           one file for everybody
 *   seat         slot │ gradients    one file per seat, new with each process that takes it
 *
 * The files are anonymous (memfd) and sealed: nobody can shrink them under another's feet, and
 * seats cannot map the parameters for writing. As in world/local, each field has one writer, and a
 * counter publishes a report after it is complete. The hub takes nothing it reads from a seat's
 * memory on trust.
 */
#ifndef AT_WORLD_SEAT_SEAT_MEMORY_H
#define AT_WORLD_SEAT_SEAT_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "anytime.h"
#include "base/err.h"
#include "step/event.h"
#include "world/process/bell.h"

enum {
    AT_SEAT_GRADIENTS = 2, /* a seat fills one while the hub reads the other */
    AT_SEAT_SCORES = 8     /* evaluations that the hub has not read yet */
};

/* What everybody may know; written by the hub. */
typedef struct at_seat_board {
    _Alignas(64) _Atomic uint64_t params_lock; /* odd while the parameters change */
    _Atomic uint64_t version;
    _Atomic uint64_t samples_used;
    _Atomic uint32_t present;    /* workers */
    _Atomic uint32_t first_rank; /* the lowest present */
    _Atomic bool     turns;      /* the hub runs on the core of the only seat */
} at_seat_board;

typedef struct at_seat_bells {
    _Alignas(64) at_bell hub;  /* the hub waits here */
    _Alignas(64) at_bell cast; /* seats wait here */
} at_seat_bells;

/* A report with the hyper-parameters of its seat. */
typedef struct at_seat_mail {
    at_report     report;
    at_seat_group group[AT_SEAT_GROUPS_MAX];
} at_seat_mail;

typedef struct at_seat_score {
    uint64_t version;
    double   accuracy, loss; /* NAN: not measured */
} at_seat_score;

typedef struct at_seat_slot {
    /* Written by the seat. */
    _Alignas(64) _Atomic uint64_t drawn; /* samples, over all holders of the seat */
    _Atomic uint64_t sent;               /* reports of this process */
    _Atomic uint64_t scores_sent;
    _Atomic bool     left;  /* it has gone for good, and sends nothing more */
    _Atomic bool     aside; /* it does something else: no lease */
    at_seat_mail     mail[AT_SEAT_GRADIENTS];
    at_seat_score    score[AT_SEAT_SCORES];
    /* Written by the hub. */
    _Alignas(64) _Atomic uint64_t taken; /* reports that the hub has read */
    _Atomic uint64_t order_lock;         /* odd while the order is being written */
    _Atomic uint64_t scores_taken;
    _Atomic uint64_t publish; /* requests for the parameters, see order.publish */
    at_order         order;
    _Atomic bool     leave, evicted;
} at_seat_slot;

/* A mapped file. */
typedef struct at_seat_file {
    int    fd; /* -1: none */
    void  *memory;
    size_t size;
} at_seat_file;

/* Sizes of the files; false when they do not fit into memory. */
bool   at_seat_params_size(size_t floats, size_t *size);
bool   at_seat_slot_size(size_t floats, uint32_t gradients, size_t *size);
size_t at_seat_bells_size(void);

/* Creates a zeroed file and maps it. `sealed`: others can only read it. */
at_err at_seat_file_new(const char *name, size_t size, bool sealed, at_seat_file *file,
                        at_fail *fail);

/* Maps a file that came from another process and takes its descriptor over, also after an error.
 * AT_ERR_FORMAT when it is smaller than `size`. */
at_err at_seat_file_map(int fd, size_t size, bool writes, at_seat_file *file, at_fail *fail);

/* Zeroed memory of this process alone. */
at_err at_seat_file_private(size_t size, at_seat_file *file, at_fail *fail);

void at_seat_file_close(at_seat_file *file); /* accepts a zeroed one */

/* ---- parameters in the program's own memory ----
 *
 * A private mapping of the parameter file over the pages of a vector: it shows what the hub writes,
 * and a page that the program writes to becomes its own. at_seat_overlay_renew shows the hub's
 * again, at_seat_overlay_keep makes all pages the program's. */

/* Maps the parameters at `to`, which has whole pages. False: it cannot be done; the vector
 * may be zeroed then. */
bool at_seat_overlay(const at_seat_file *params, size_t floats, float *to);
void at_seat_overlay_renew(float *at, size_t floats);
void at_seat_overlay_keep(float *at, size_t floats);

/* The floats behind the board, and gradient `index` behind a slot. */
float *at_seat_floats(const at_seat_file *params);
float *at_seat_slot_gradient(const at_seat_file *slot, size_t floats, uint32_t index);

#endif
