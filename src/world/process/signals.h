/* signals.h - turns SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD, SIGCONT and SIGIO into
 * flags and rings of one bell.
 *
 * The first SIGINT, SIGTERM or SIGHUP requests a clean stop; another SIGINT or SIGTERM, half a
 * second later or more, has its default effect and ends the program at once (workers die with it).
 * Within that half second it is taken for the same request: `timeout` signals both the process and
 * its group. SIGHUP is left alone where it is ignored (`nohup`). Closing restores the previous
 * handlers, so a program that embeds the library keeps its own; only after a stop this rule stays
 * in force where the default was. LIMIT: only one bell at a time per process.
 */
#ifndef AT_WORLD_PROCESS_SIGNALS_H
#define AT_WORLD_PROCESS_SIGNALS_H

#include <stdbool.h>

#include "world/process/bell.h"

/* Installs the handlers; they ring `bell`. */
void at_signals_open(at_bell *bell);
/* Restores the previous handlers. After a stop, SIGINT and SIGTERM with their default handlers
 * still take half a second to end the program, and SIGHUP does not end it, so that it can write
 * its result. */
void at_signals_close(void);

/* For a program that makes several runs one after another: from here to at_signals_release, these
 * signals request a stop also between two runs, and the next one that opens the handlers knows of
 * it. Not while they are open. */
void at_signals_hold(void);
/* Ends this; after a stop the rule of at_signals_close holds. */
void at_signals_release(void);

/* What the handler of the first such signal writes to stderr at once, whatever the program is
 * doing; NULL, as at the start: nothing. The text MUST stay valid. */
void at_signals_notice(const char *text);

/* True from the first SIGINT, SIGTERM or SIGHUP on. */
bool at_signals_stop(void);

/* True when a child has ended since the last call. */
bool at_signals_child(void);

/* True when SIGUSR1 has requested a checkpoint since the last call. */
bool at_signals_save(void);

/* Workers that SIGUSR2 has asked for since the last call. */
unsigned at_signals_joins(void);

/* True when the process was continued (SIGCONT) since the last call: it may have been stopped. */
bool at_signals_continued(void);

/* True when a descriptor with O_ASYNC has had something to read since the last call. */
bool at_signals_io(void);

#endif
