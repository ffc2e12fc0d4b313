/* seat_children.h - the processes of `anytime run`: copies of one command, one per rank. Internal
 * to world/.
 *
 * Each is the leader of a process group of its own, so that Ctrl-C reaches only the hub, which ends
 * the run in an orderly way, and so that what a script starts can be ended with it. Output goes to
 * files, or line by line with the rank in front through one relay process, which also remembers the
 * last line of errors. All of them die with the hub.
 */
#ifndef AT_WORLD_SEAT_SEAT_CHILDREN_H
#define AT_WORLD_SEAT_SEAT_CHILDREN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/time.h"

enum { AT_SEAT_LINE_SIZE = 256 };

/* Borrowed for the life of the children. */
typedef struct at_seat_command {
    const char *const *words; /* of the command, NULL ends them; or NULL: there are no processes */
    uint32_t           ranks; /* started at first */
    uint32_t           ranks_max;
    uint32_t           restarts;    /* of a rank, in a row without a report */
    const char        *log_dir;     /* NULL: lines with prefixes */
    bool               no_stdout;   /* what they print goes to stderr, too */
    const char        *hub, *token; /* paths, absolute */
} at_seat_command;

typedef struct at_seat_children at_seat_children;

/* A process that has ended. */
typedef struct at_seat_end {
    uint32_t      rank;
    pid_t         pid;
    int           status;   /* of wait4 */
    bool          well;     /* it exited with 0 */
    bool          returns;  /* it may be started again, at at_seat_children_ready_at */
    char          text[96]; /* "exited with 1" */
    struct rusage rusage;
} at_seat_end;

/* Prepares their output; no process is started yet. Close it also after an error. */
at_err at_seat_children_open(const at_seat_command *command, at_seat_children **children,
                             at_fail *fail);

/* Kills and reaps all of them, with their process groups; accepts NULL. */
void at_seat_children_close(at_seat_children *children);

/* Starts the process of a rank, which has none. */
at_err at_seat_children_start(at_seat_children *children, uint32_t rank, at_fail *fail);

/* Reaps one process that has ended; false: there is none. */
bool at_seat_children_reap(at_seat_children *children, at_seat_end *end);

/* When a rank should be started again, on the machine's clock. */
at_ns at_seat_children_ready_at(const at_seat_children *children, uint32_t rank);

/* True when there is a command to run; otherwise others start the workers. */
bool at_seat_children_command(const at_seat_children *children);

/* The process of a rank; 0: none. */
pid_t at_seat_children_pid(const at_seat_children *children, uint32_t rank);

/* Ranks that have a process. */
uint32_t at_seat_children_running(const at_seat_children *children);

/* It has reported: its earlier ends are forgotten. */
void at_seat_children_well(at_seat_children *children, uint32_t rank);

/* Sends a signal to the group of a rank; without a process: nothing. */
void at_seat_children_signal(at_seat_children *children, uint32_t rank, int number);

/* The last line of errors that a rank has printed; "" when it has printed none. */
const char *at_seat_children_last_line(at_seat_children *children, uint32_t rank);

/* Exit code of the last process of a rank: 128 + N after signal N; 0 before its end. */
int  at_seat_children_code(const at_seat_children *children, uint32_t rank);
void at_seat_children_forgive(at_seat_children *children, uint32_t rank); /* makes it 0 */

#endif
