/* Operating system, processor, cores, memory, disk. */
#include <assert.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/machine.h"
#include "base/text.h"
#include "cli/verbs/doctor.h"
#include "world/core/run.h"

enum { LINE_SIZE = 512 };

/* The rest of the file's first line that begins so, without the line end. */
static bool read_line(const char *path, const char *beginning, char rest[LINE_SIZE])
{
    char   line[LINE_SIZE];
    bool   found = false;
    size_t length = strlen(beginning);
    FILE  *file = fopen(path, "re");
    if (!file) return false;
    while (!found && fgets(line, sizeof line, file)) found = !strncmp(line, beginning, length);
    fclose(file);
    if (!found) return false;
    line[strcspn(line, "\n")] = '\0';
    snprintf(rest, LINE_SIZE, "%s", line + length);
    return true;
}

static void probe_system(at_finding *f)
{
    struct utsname names;
    char           release[LINE_SIZE];
    if (uname(&names) != 0) {
        at_finding_add(f, "unknown");
        return;
    }
    at_finding_add(f, "%s %s %s", names.sysname, names.release, names.machine);
    if (read_line("/etc/os-release", "PRETTY_NAME=", release))
        at_finding_add(f, ", %.*s", (int)strcspn(release + (*release == '"'), "\""),
                       release + (*release == '"'));
}

static void probe_processor(at_finding *f)
{
    char        model[LINE_SIZE];
    const char *name = "unknown";
    if (read_line("/proc/cpuinfo", "model name", model)) name = model + strspn(model, "\t :");
    at_finding_add(f, "%s", name);
#if defined(__x86_64__)
    bool avx2 = __builtin_cpu_supports("avx2"), fma = __builtin_cpu_supports("fma");
    bool avx512 = __builtin_cpu_supports("avx512f");
    at_finding_add(f, "; AVX2 %s, FMA %s, AVX-512 %s", avx2 ? "yes" : "no", fma ? "yes" : "no",
                   avx512 ? "yes" : "no");
    f->facts = json_pack("{s:s, s:b, s:b, s:b}", "model", name, "avx2", avx2, "fma", fma, "avx512f",
                         avx512);
#endif
}

/* ---- cores ----------------------------------------------------------------------------------- */

/* Cores' worth of time a control group may use, from a file of "QUOTA PERIOD"; 0: no limit. */
static double quota_of(const char *folder)
{
    char    path[PATH_MAX], line[LINE_SIZE];
    double  quota, period;
    at_text text = at_text_in(path, sizeof path);
    at_text_add(&text, "%s/cpu.max", folder);
    if (!read_line(path, "", line)) return 0;
    char *gap = strchr(line, ' ');
    if (gap) *gap = '\0';
    bool numbers = gap && at_text_real(line, &quota) && at_text_real(gap + 1, &period);
    return numbers && period > 0 ? quota / period : 0;
}

/* The tightest limit of our control group and the ones above it (version 2 of control groups). */
static double tightest_quota(void)
{
    static const char root[] = "/sys/fs/cgroup";
    char              group[LINE_SIZE], folder[PATH_MAX];
    double            tightest = 0;
    if (!read_line("/proc/self/cgroup", "0::", group)) return 0;
    snprintf(folder, sizeof folder, "%s%s", root, group);
    for (char *end; (end = strrchr(folder, '/')) && strlen(folder) >= strlen(root); *end = '\0') {
        double quota = quota_of(folder);
        if (quota > 0 && (tightest <= 0 || quota < tightest)) tightest = quota;
    }
    return tightest;
}

static void probe_cores(at_finding *f)
{
    uint32_t cores = at_machine_cores();
    long     online = sysconf(_SC_NPROCESSORS_ONLN);
    double   quota = tightest_quota();
    at_finding_add(f, "%u at hand of %ld", cores, online);
    if (quota > 0) at_finding_add(f, ", limited to the time of %.3g by a control group", quota);
    f->facts = json_pack("{s:i, s:i, s:o}", "at_hand", (int)cores, "online", (int)online, "quota",
                         quota > 0 ? json_real(quota) : json_null());
    if (quota > 0 && quota < cores)
        at_finding_judge(f, AT_DIAGNOSIS_NOTE,
                         "give at most --workers %u: more would be halted by the kernel in the "
                         "midst of their rounds",
                         quota < 1 ? 1 : (unsigned)quota);
    if (cores == 1)
        at_finding_judge(f, AT_DIAGNOSIS_NOTE,
                         "several workers will share one core; --sample-time makes them behave "
                         "like machines of their own");
}

static void probe_load(at_finding *f)
{
    double load[3];
    if (getloadavg(load, 3) != 3) {
        at_finding_add(f, "unknown");
        return;
    }
    at_finding_add(f, "%.2f %.2f %.2f (processes that want to run; 1, 5 and 15 minutes)", load[0],
                   load[1], load[2]);
    if (load[0] > 0.5 * at_machine_cores())
        at_finding_judge(f, AT_DIAGNOSIS_NOTE, "other programs are busy: measured times will vary");
}

/* ---- memory and disk ------------------------------------------------------------------------- */

static void probe_memory(at_finding *f)
{
    at_memory memory = at_machine_memory();
    double    total = (double)memory.total, available = (double)memory.available;
    at_finding_add(f, "%.1f GB, %.1f GB available", total / 1e9, available / 1e9);
    f->facts = json_pack("{s:I, s:I}", "total_bytes", (json_int_t)total, "available_bytes",
                         (json_int_t)available);
    if (available < 0.5e9)
        at_finding_judge(f, AT_DIAGNOSIS_NOTE,
                         "little is left: use few workers, a small model and a small data set");
}

static void probe_folder(at_finding *f)
{
    struct statvfs disk;
    char           here[PATH_MAX];
    if (!getcwd(here, sizeof here) || statvfs(".", &disk) != 0) {
        at_finding_add(f, "cannot be looked at");
        at_finding_judge(f, AT_DIAGNOSIS_NOTE, "change to a folder that exists, or give --run DIR");
        return;
    }
    double free_bytes = (double)disk.f_bavail * (double)disk.f_frsize;
    bool   writable = access(".", W_OK) == 0;
    at_finding_add(f, "%.200s, %s, %.1f GB free", here, writable ? "writable" : "not writable",
                   free_bytes / 1e9);
    f->facts = json_pack("{s:b, s:I}", "writable", writable, "free_bytes", (json_int_t)free_bytes);
    if (!writable)
        at_finding_judge(f, AT_DIAGNOSIS_NOTE, "change to a folder of your own, or give --run DIR");
    if (free_bytes < 1e8)
        at_finding_judge(f, AT_DIAGNOSIS_NOTE, "almost full: use --record none, or give --run DIR");
}

const at_probe at_probes_machine[] = {
    {"system", probe_system},
    {"processor", probe_processor},
    {"cores", probe_cores},
    {"load", probe_load},
    {"memory", probe_memory},
    {"this folder", probe_folder},
    {0},
};
