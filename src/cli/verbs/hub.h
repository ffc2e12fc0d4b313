/* hub.h - what `hub` shares with `run`. */
#ifndef AT_CLI_VERBS_HUB_H
#define AT_CLI_VERBS_HUB_H

#include "cli/options/options.h"
#include "world/seat/seat_hub.h"

/* Says where workers can join, and writes it to --hub-file. */
at_err at_announce_hub(const at_parsed *parsed, const at_seat_hub *hub, at_fail *fail);

#endif
