/* faults.h - what befalls workers in virtual time, as text. */
#ifndef AT_WORLD_SIM_FAULTS_H
#define AT_WORLD_SIM_FAULTS_H

#include "world/core/world.h"

enum { AT_FAULTS_MAX = 1024 };

/* Reads "die:W@T, die:W@T+D, freeze:W@T+D, late:W@T+D, ..": worker W dies at time T (and is
 * replaced after D), stands still from T on for D, or sends a report after T that takes D longer.
 * The array (AT_FAULTS_MAX long) is filled in order of time. Nothing for NULL. */
at_err at_faults_parse(const char *text, uint32_t workers, at_fault *faults, size_t *count,
                       at_fail *fail);

#endif
