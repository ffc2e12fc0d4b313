/* faults.h - parses the faults injected into workers in virtual time (--faults). */
#ifndef AT_WORLD_SIM_FAULTS_H
#define AT_WORLD_SIM_FAULTS_H

#include "world/core/world.h"

enum { AT_FAULTS_MAX = 1024 };

/* Parses "die:W@T, die:W@T+D, freeze:W@T+D, late:W@T+D, ..": worker W dies at time T (and is
 * replaced after D), is stopped at T for D, or sends its next report after T with D more delay.
 * Fills the array (AT_FAULTS_MAX long) in order of time. NULL: no faults. */
at_err at_faults_parse(const char *text, uint32_t workers, at_fault *faults, size_t *count,
                       at_fail *fail);

#endif
