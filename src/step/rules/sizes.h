/* sizes.h - the parts of the size rules that size.c puts into its table. Internal to step/.
 *
 *     size_auto.c   auto              size_grow.c   grow, shrink      size_noise.c  noise
 *     size_speed.c  speed             size_loss.c   loss              size_probe.c  probe
 */
#ifndef AT_STEP_RULES_SIZES_H
#define AT_STEP_RULES_SIZES_H

#include "step/hub.h"

/* ---- for rules (size.c) -------------------------------------------------------------------- */

/* The nearest whole number of samples within the plan's limits. */
uint32_t at_size_clamp(const at_plan *plan, double samples);

/* Gives everybody the same number of samples. */
void at_size_all(const at_plan *plan, at_share *shares, uint32_t samples);

/* Whole epochs in so many used samples; 0 when the length of an epoch is not known. */
uint64_t at_size_epochs(const at_plan *plan, uint64_t samples_used);

/* A batch that a rule may have decided on; 0: it has not decided yet. */
bool at_size_is_batch(const at_plan *plan, uint32_t batch);

/* ---- for the hub (size.c) ------------------------------------------------------------------ */

/* What the rule decides on. `applied` is the event that ended the step, NULL at the start. */
at_progress at_size_progress(const at_hub *hub, const at_event *applied);

/* What the learning rate is multiplied by: under --lr-scale linear the samples that those who are
 * there have been given, over those of the first step. */
double at_size_lr_factor(const at_hub *hub);

/* ---- the rules, in the words of at_size_rule ------------------------------------------------- */

/* Bytes of its memory. */
size_t at_size_auto_state(const at_plan *plan);
/* Numbers that can be. */
bool at_size_auto_sound(const void *state, const at_plan *plan, uint64_t samples_used);
/* Remembers one round's sleep and speed. */
void at_size_auto_observe(void *state, const at_plan *plan, at_node worker, const at_work *work);
/* Solves for the time limit over the remembered rounds. */
void at_size_auto_decide(void *state, const at_plan *plan, at_share *shares,
                         const at_progress *progress);

/* `epoch` or `step`. */
at_err at_size_speed_read(const char *number, at_plan *plan, at_fail *fail);
/* The same. */
void at_size_speed_tell(const at_plan *plan, at_text *text);
/* Bytes of its memory. */
size_t at_size_speed_state(const at_plan *plan);
/* Numbers that can be. */
bool at_size_speed_sound(const void *state, const at_plan *plan, uint64_t samples_used);
/* Adds one round to the window. */
void at_size_speed_observe(void *state, const at_plan *plan, at_node worker, const at_work *work);
/* Divides the total batch by speed. */
void at_size_speed_decide(void *state, const at_plan *plan, at_share *shares,
                          const at_progress *progress);

/* `FACTOR,EPOCHS`, also for shrink. */
at_err at_size_grow_read(const char *number, at_plan *plan, at_fail *fail);
/* The same. */
void at_size_grow_tell(const at_plan *plan, at_text *text);
/* Multiplies the batch. */
void at_size_grow_decide(void *state, const at_plan *plan, at_share *shares,
                         const at_progress *progress);
/* Divides the batch. */
void at_size_shrink_decide(void *state, const at_plan *plan, at_share *shares,
                           const at_progress *progress);

/* Bytes of its memory. */
size_t at_size_loss_state(const at_plan *plan);
/* Numbers that can be. */
bool at_size_loss_sound(const void *state, const at_plan *plan, uint64_t samples_used);
/* Doubles or halves after an epoch. */
void at_size_loss_decide(void *state, const at_plan *plan, at_share *shares,
                         const at_progress *progress);

/* Bytes of its memory. */
size_t at_size_noise_state(const at_plan *plan);
/* Numbers that can be. */
bool at_size_noise_sound(const void *state, const at_plan *plan, uint64_t samples_used);
/* Follows the ratio of noise to gradient. */
void at_size_noise_decide(void *state, const at_plan *plan, at_share *shares,
                          const at_progress *progress);

/* Bytes of its memory. */
size_t at_size_probe_state(const at_plan *plan);
/* Numbers that can be. */
bool at_size_probe_sound(const void *state, const at_plan *plan, uint64_t samples_used);
/* Tries sizes, then keeps the fastest. */
void at_size_probe_decide(void *state, const at_plan *plan, at_share *shares,
                          const at_progress *progress);

#endif
