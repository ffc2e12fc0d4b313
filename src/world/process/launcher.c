#include "world/process/launcher.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "step/event.h"

/* The environment variables of one launcher. */
typedef struct launcher_kind {
    const char *name;
    const char *rank, *size;
    const char *required;   /* another variable that must be set; may be NULL */
    const char *local_size; /* ranks on this machine; may be NULL */
} launcher_kind;

static const launcher_kind kinds[] = {
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL,
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"PMIx", "PMIX_RANK", "SLURM_STEP_NUM_TASKS", NULL, NULL},
    {"PMI", "PMI_RANK", "PMI_SIZE", NULL, "MPI_LOCALNRANKS"},
    {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID", NULL},
};

static bool read_number(const char *variable, uint32_t *value)
{
    const char *text = variable ? getenv(variable) : NULL;
    int64_t     number;
    assert(value);
    if (!text || !at_text_whole(text, &number)) return false;
    if (number < 0 || number > AT_WORKERS_MAX) return false;
    *value = (uint32_t)number;
    return true;
}

static bool detect(const launcher_kind *kind, at_launcher *launcher)
{
    uint32_t rank, size, local_size = 0;
    assert(kind->rank && kind->size);
    if (kind->required && !getenv(kind->required)) return false;
    if (!read_number(kind->rank, &rank) || !read_number(kind->size, &size)) return false;
    if (rank >= size) return false;
    if (!read_number(kind->local_size, &local_size) || local_size > size) local_size = 0;
    *launcher =
        (at_launcher){.name = kind->name, .rank = rank, .size = size, .local_size = local_size};
    return true;
}

static bool is_srun(const at_launcher *launcher)
{
    const char *name = launcher->name;
    return name && (strcmp(name, "PMIx") == 0 || strcmp(name, "Slurm") == 0);
}

at_launcher at_launcher_detect(void)
{
    at_launcher launcher = {.size = 1};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (detect(&kinds[i], &launcher)) break;
    const char *recovery = getenv("OMPI_MCA_orte_enable_recovery");
    launcher.recovers = !is_srun(&launcher) && recovery &&
                        (strcmp(recovery, "1") == 0 || strcmp(recovery, "true") == 0);
    return launcher;
}

const char *at_launcher_survival(const at_launcher *launcher)
{
    assert(launcher->size >= 1);
    if (launcher->recovers) return "the run continues without a rank that dies";
    if (is_srun(launcher))
        return "srun ends all ranks when one dies; with `mpirun --enable-recovery` in the batch "
               "script the others continue";
    if (launcher->name && strcmp(launcher->name, "Open MPI") != 0)
        return "the launcher decides what happens when a rank dies";
    return "a rank that dies ends the whole job; with `mpirun --enable-recovery` the others "
           "continue";
}
