/* launcher.h - detects whether an MPI launcher (mpirun, srun) started this process.
 *
 * Reads only the environment, so that a plain start never touches MPI. In this order:
 *
 *   Open MPI    OMPI_COMM_WORLD_SIZE and OMPI_COMM_WORLD_RANK
 *   PMIx        PMIX_RANK, with the size from Slurm
 *   PMI         PMI_SIZE and PMI_RANK (hydra)
 *   Slurm       SLURM_STEP_ID and SLURM_PROCID, with SLURM_STEP_NUM_TASKS; SLURM_NTASKS alone does
 *               not count, because a plain batch shell has it too
 */
#ifndef AT_WORLD_PROCESS_LAUNCHER_H
#define AT_WORLD_PROCESS_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct at_launcher {
    const char *name; /* for messages; NULL: started without a launcher */
    uint32_t    rank, size;
    uint32_t    local_size; /* ranks on this machine; 0: unknown */
    bool        recovers;   /* the job survives the death of a rank, judging by the environment */
} at_launcher;

/* Reads the environment; inconsistent values (a rank not below the size) are ignored. Under srun
 * no job recovers, whatever Open MPI's setting: Slurm's PMIx kills the step when a rank dies. */
at_launcher at_launcher_detect(void);

/* A sentence about what happens when a rank dies, and which setting would improve it. */
const char *at_launcher_survival(const at_launcher *launcher);

#endif
