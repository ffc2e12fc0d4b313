/* signals.h - Ctrl-C, SIGTERM, SIGUSR1 and the death of children, as rings of one bell.
 *
 * The first SIGINT or SIGTERM asks for a clean stop; the second one has its default effect, which
 * ends the program at once (workers die with it). Handlers are put back at close, so a host program
 * keeps its own. LIMIT: one watch at a time in a process.
 */
#ifndef AT_WORLD_PROCESS_SIGNALS_H
#define AT_WORLD_PROCESS_SIGNALS_H

#include <stdbool.h>

#include "world/process/bell.h"

/* From now on signals ring `bell`. */
void at_signals_open(at_bell *bell);
/* Puts the former handlers back. */
void at_signals_close(void);

/* Did SIGINT or SIGTERM come? Stays true. */
bool at_signals_stop(void);

/* Did a child end since the last call? */
bool at_signals_child(void);

/* Did SIGUSR1 ask for a checkpoint since the last call? */
bool at_signals_save(void);

#endif
