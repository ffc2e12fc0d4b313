/* The program, its libraries, other programs it uses, data sets. */
#include <assert.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/verbs/doctor.h"
#include "data/fetch/catalog.h"
#include "learn/engines/blas.h"
#include "learn/net/model.h"
#include "world/mpi/mpi_world.h"

static void probe_build(at_finding *f)
{
    at_finding_add(f, "%s, built with %s %s, assertions on", ANYTIME_VERSION,
#if defined(__clang__)
                   "clang",
#else
                   "gcc",
#endif
                   __VERSION__);
    at_finding_add(f, ", flags %s", ANYTIME_FLAGS);
    if (!ANYTIME_SANITIZERS[0]) return;
    at_finding_add(f, ", sanitizers %s", ANYTIME_SANITIZERS);
    at_finding_judge(f, AT_DIAGNOSIS_NOTE, "a build for tests: slow, and its times mean nothing");
}

static void probe_libraries(at_finding *f)
{
    at_finding_add(f, "glibc %s, jansson %s", gnu_get_libc_version(), jansson_version_str());
}

static const char *engine_of(const char *name)
{
    at_model *model;
    at_shape  shape = {.features = 784, .classes = 10};
    if (at_model_new(name, shape, AT_ENGINE_FAST, 1, &model, NULL)) return "none";
    const char *engine = at_model_engine(model); /* a constant, outlives the model */
    at_model_free(model);
    return engine;
}

static void probe_engine(at_finding *f)
{
    const char *few = engine_of("softmax"), *many = engine_of("mlp:300,100");
    at_finding_add(f, "%s for narrow layers, %s for wide ones", few, many);
    f->facts = json_pack("{s:s, s:s}", "narrow", few, "wide", many);
    if (strcmp(few, "avx2") != 0)
        at_finding_judge(f, AT_DIAGNOSIS_NOTE,
                         "no kernels of our own for this processor (they need AVX2 and FMA): "
                         "narrow layers, and so softmax, are slower than they could be");
}

static void probe_blas(at_finding *f)
{
    at_engine_info info = at_engine_info_get();
    at_finding_add(f, "%s, %s", info.blas_config, info.blas_path ? info.blas_path : "path unknown");
    f->facts = json_pack("{s:s, s:s, s:s?, s:b}", "config", info.blas_config, "core",
                         info.blas_core, "path", info.blas_path, "serial", info.blas_serial);
    if (!info.blas_serial)
        at_finding_judge(f, AT_DIAGNOSIS_PROBLEM,
                         "this OpenBLAS has threads, which do not survive a fork; run: apt-get "
                         "install libopenblas-serial-dev, and leave LD_LIBRARY_PATH alone");
}

/* Looks for a program as the shell does. */
static bool find_program(const char *name, char path[PATH_MAX])
{
    const char *from = getenv("PATH");
    while (from && *from) {
        int     length = (int)strcspn(from, ":");
        at_text text = at_text_in(path, PATH_MAX);
        at_text_add(&text, "%.*s/%s", length, from, name);
        if (length > 0 && !text.full && access(path, X_OK) == 0) return true;
        from += length;
        from += *from == ':';
    }
    return false;
}

static void probe_gnuplot(at_finding *f)
{
    char path[PATH_MAX];
    bool there = find_program("gnuplot", path);
    at_finding_add(f, "%s", there ? path : "not found");
    if (!there)
        at_finding_judge(f, AT_DIAGNOSIS_NOTE,
                         "no pictures, tables only; run: apt-get install gnuplot-nox");
}

static void probe_mpi(at_finding *f)
{
    char        path[PATH_MAX], version[64];
    at_launcher launcher = at_launcher_detect();
    at_mpi_version(version, sizeof version);
    at_finding_add(f, "%s, mpirun %s; %s", version, find_program("mpirun", path) ? path : "missing",
                   at_launcher_survival(&launcher));
    if (!find_program("mpirun", path))
        at_finding_judge(f, AT_DIAGNOSIS_NOTE,
                         "one machine only; for several run: apt-get install openmpi-bin");
}

/* npm matters only for sets that are not here yet. */
static void probe_npm(at_finding *f)
{
    char                  path[PATH_MAX], folder[PATH_MAX];
    size_t                count;
    const at_catalog_row *rows = at_catalog_rows(&count);
    bool                  there = find_program("npm", path);
    at_finding_add(f, "%s", there ? path : "not found");
    for (size_t i = 0; !there && i < count; i++)
        if (rows[i].package.npm && at_catalog_locate(&rows[i], folder, NULL) != AT_OK)
            at_finding_judge(f, AT_DIAGNOSIS_NOTE,
                             "`anytime data get %s` needs it; run: apt-get install npm",
                             rows[i].name);
}

static void probe_data(at_finding *f)
{
    char                  folder[PATH_MAX];
    size_t                count, here = 0;
    const at_catalog_row *rows = at_catalog_rows(&count);
    f->facts = json_object();
    for (size_t i = 0; i < count; i++) {
        bool there = at_catalog_locate(&rows[i], folder, NULL) == AT_OK;
        at_finding_add(f, "%s%s %s%s", i ? ", " : "", rows[i].name, there ? "in " : "is not here",
                       there ? folder : "");
        json_object_set_new(f->facts, rows[i].name, there ? json_string(folder) : json_null());
        here += there;
    }
    if (here == 0)
        at_finding_judge(f, AT_DIAGNOSIS_NOTE,
                         "run: anytime data get %s; until then there is --data synthetic",
                         rows[0].name);
}

const at_probe at_probes_software[] = {
    {"anytime", probe_build}, {"libraries", probe_libraries}, {"engine", probe_engine},
    {"openblas", probe_blas}, {"gnuplot", probe_gnuplot},     {"mpi", probe_mpi},
    {"npm", probe_npm},       {"data sets", probe_data},      {0},
};
