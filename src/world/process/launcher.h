/* launcher.h - who started this process: a launcher of many ranks, or a person.
 *
 * Told by the environment alone, so that a plain start never touches MPI. In this order:
 *
 *   Open MPI    OMPI_COMM_WORLD_SIZE and OMPI_COMM_WORLD_RANK
 *   PMIx        PMIX_RANK, with the size that Slurm tells
 *   PMI         PMI_SIZE and PMI_RANK (hydra)
 *   Slurm       SLURM_STEP_ID and SLURM_PROCID, with SLURM_STEP_NUM_TASKS; SLURM_NTASKS without a
 *               step is no launcher: a plain batch shell has it, too
 */
#ifndef AT_WORLD_PROCESS_LAUNCHER_H
#define AT_WORLD_PROCESS_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct at_launcher {
    const char *name; /* for people; NULL: nobody, we are alone */
    uint32_t    rank, size;
    uint32_t    local_size; /* ranks on this machine; 0: not told */
    bool        recovers;   /* goes on when a rank dies, as far as it is told */
} at_launcher;

/* Reads the environment. What makes no sense (a rank that is not below the size) counts as not
 * being there. */
at_launcher at_launcher_detect(void);

/* What happens when a rank dies, and what to set where that could be better. */
const char *at_launcher_survival(const at_launcher *launcher);

#endif
