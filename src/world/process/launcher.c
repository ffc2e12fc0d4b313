#include "world/process/launcher.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "step/event.h"

/* One way to be told. Names may be NULL: not told. */
typedef struct sign {
    const char *name;
    const char *rank, *size;
    const char *also;       /* must be there, too */
    const char *local_size; /* ranks on this machine */
} sign;

static const sign signs[] = {
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL,
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"PMIx", "PMIX_RANK", "SLURM_STEP_NUM_TASKS", NULL, NULL},
    {"PMI", "PMI_RANK", "PMI_SIZE", NULL, "MPI_LOCALNRANKS"},
    {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID", NULL},
};

static bool whole(const char *variable, uint32_t *value)
{
    const char *text = variable ? getenv(variable) : NULL;
    int64_t     number;
    if (!text || !at_text_whole(text, &number)) return false;
    if (number < 0 || number > AT_WORKERS_MAX) return false;
    *value = (uint32_t)number;
    return true;
}

static bool read_sign(const sign *s, at_launcher *launcher)
{
    uint32_t rank, size, local_size = 0;
    assert(s->rank && s->size);
    if (s->also && !getenv(s->also)) return false;
    if (!whole(s->rank, &rank) || !whole(s->size, &size) || rank >= size) return false;
    if (!whole(s->local_size, &local_size) || local_size > size) local_size = 0;
    *launcher =
        (at_launcher){.name = s->name, .rank = rank, .size = size, .local_size = local_size};
    return true;
}

at_launcher at_launcher_detect(void)
{
    at_launcher launcher = {.size = 1};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (read_sign(&signs[i], &launcher)) break;
    const char *recovery = getenv("OMPI_MCA_orte_enable_recovery");
    launcher.recovers = recovery && (strcmp(recovery, "1") == 0 || strcmp(recovery, "true") == 0);
    return launcher;
}

const char *at_launcher_survival(const at_launcher *launcher)
{
    if (launcher->recovers) return "a rank that dies is left out, and the run goes on";
    if (launcher->name && strcmp(launcher->name, "Open MPI") != 0)
        return "what happens when a rank dies is up to the launcher (srun: --kill-on-bad-exit=0 "
               "and OMPI_MCA_orte_enable_recovery=1 let the others go on)";
    return "a rank that dies ends the whole job; `mpirun --enable-recovery` lets the others go on";
}
