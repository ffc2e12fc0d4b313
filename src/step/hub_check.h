/* hub_check.h - what holds for a hub between any two events. Internal to step/.
 *
 * A violation is a bug of this program: what comes from files or other processes is checked before
 * it becomes an event.
 */
#ifndef AT_STEP_HUB_CHECK_H
#define AT_STEP_HUB_CHECK_H

#include "step/hub.h"

/* After every event. Takes constant time. */
void at_hub_check(const at_hub *hub);

/* After every closed step: the totals are the sums over the members. Takes time in proportion to
 * the number of workers. */
void at_hub_check_ledger(const at_hub *hub);

#endif
