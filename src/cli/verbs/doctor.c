/* `anytime doctor`: checks everything a run needs. A probe examines one thing and states what it
 * found; for a note or a problem also what it means or what to do. A new probe is one function and
 * one row of the table. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <jansson.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/isa.h"
#include "base/machine.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/parts.h"
#include "cli/verbs/verbs.h"
#include "data/fetch/catalog.h"
#include "learn/engines/blas.h"
#include "learn/net/model.h"
#include "world/mpi/mpi_world.h"
#include "world/process/bell.h"
#include "world/process/child.h"

/* ok; works, with a remark; will not work. */
typedef enum verdict { OK, NOTE, PROBLEM, VERDICTS } verdict;
static const char *const verdict_name[VERDICTS] = {"ok", "note", "problem"};

typedef struct finding {
    verdict verdict;
    char    found[400];
    char    advice[240]; /* what it means or what to do; empty if ok */
    json_t *facts;       /* the numbers, for --json; NULL: none */
} finding;

typedef struct probe {
    const char *what;
    void (*look)(finding *f);
} probe;

/* Appends to what was found, printf-like. */
__attribute__((format(printf, 2, 3))) static void add(finding *f, const char *format, ...)
{
    size_t  used = strlen(f->found);
    va_list arguments;
    assert(used < sizeof f->found);
    va_start(arguments, format);
    vsnprintf(f->found + used, sizeof f->found - used, format, arguments);
    va_end(arguments);
}

/* Sets verdict and advice, printf-like, unless the finding is already as bad. */
__attribute__((format(printf, 3, 4))) static void judge(finding *f, verdict worse,
                                                        const char *format, ...)
{
    va_list arguments;
    if (worse <= f->verdict) return;
    f->verdict = worse;
    va_start(arguments, format);
    vsnprintf(f->advice, sizeof f->advice, format, arguments);
    va_end(arguments);
}

/* ---- program, libraries, data sets ----------------------------------------------------------- */

static void probe_build(finding *f)
{
    add(f, "%s, built with %s %s, assertions on", ANYTIME_VERSION,
#if defined(__clang__)
        "clang",
#else
        "gcc",
#endif
        __VERSION__);
    add(f, ", flags %s", ANYTIME_FLAGS);
    if (!ANYTIME_SANITIZERS[0]) return;
    add(f, ", sanitizers %s", ANYTIME_SANITIZERS);
    judge(f, NOTE, "a build for tests: slow, and its timings are meaningless");
}

static void probe_libraries(finding *f)
{
    add(f, "glibc %s, jansson %s", gnu_get_libc_version(), jansson_version_str());
}

static void probe_parts(finding *f)
{
    char missing[64];
    at_parts_missing(missing, sizeof missing);
    add(f, "%s%s", *missing ? "built without " : "MPI, oneDNN and microhttpd are built in",
        missing);
    f->facts = json_object();
    for (size_t i = 0; i < at_parts_count; i++) {
        const at_part *part = &at_parts[i];
        json_object_set_new(f->facts, part->name, json_boolean(part->present));
        if (!part->present)
            judge(f, NOTE, "%s; install %s and build again", part->loss, part->package);
    }
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

static void probe_engine(finding *f)
{
    const char *few = engine_of("softmax"), *many = engine_of("mlp:300,100");
    add(f, "%s for narrow layers, %s for wide ones", few, many);
    f->facts = json_pack("{s:s, s:s}", "narrow", few, "wide", many);
    if (strcmp(few, "avx2") != 0)
        judge(f, NOTE,
              "the fast kernels need AVX2 and FMA, which this processor lacks: narrow "
              "layers, and so softmax, are slow");
}

static void probe_blas(finding *f)
{
    at_engine_info info = at_engine_info_get();
    add(f, "%s, %s", info.blas_config, info.blas_path ? info.blas_path : "path unknown");
    f->facts = json_pack("{s:s, s:s, s:s?, s:b}", "config", info.blas_config, "core",
                         info.blas_core, "path", info.blas_path, "serial", info.blas_serial);
    if (!info.blas_serial)
        judge(f, PROBLEM,
              "this OpenBLAS uses threads, which do not survive a fork; run: apt-get "
              "install libopenblas-serial-dev, and unset LD_LIBRARY_PATH");
}

/* Searches PATH for a program. */
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

static void probe_gnuplot(finding *f)
{
    char path[PATH_MAX];
    bool there = find_program("gnuplot", path);
    add(f, "%s", there ? path : "not found");
    if (!there) judge(f, NOTE, "no plots, only tables; run: apt-get install gnuplot-nox");
}

/* mpirun looks up the name of its machine; where nobody knows it, every start takes long. */
static bool own_name_resolves(char name[HOST_NAME_MAX + 1])
{
    struct addrinfo *found = NULL;
    if (gethostname(name, HOST_NAME_MAX + 1) != 0) return true;
    name[HOST_NAME_MAX] = '\0';
    if (getaddrinfo(name, NULL, NULL, &found) != 0) return false;
    freeaddrinfo(found);
    return true;
}

static void probe_mpi(finding *f)
{
    char        path[PATH_MAX], version[64], name[HOST_NAME_MAX + 1];
    at_launcher launcher = at_launcher_detect();
    at_mpi_version(version, sizeof version);
    add(f, "%s, mpirun %s; %s", version, find_program("mpirun", path) ? path : "missing",
        at_launcher_survival(&launcher));
    if (!find_program("mpirun", path))
        judge(f, NOTE, "limited to one machine; for several, run: apt-get install openmpi-bin");
    else if (!own_name_resolves(name))
        judge(f, NOTE,
              "this machine does not know its own name, so every mpirun may take 15 s; run: "
              "echo 127.0.1.1 %s >> /etc/hosts",
              name);
}

/* npm is needed only to download some data sets. */
static void probe_npm(finding *f)
{
    char                  path[PATH_MAX], folder[PATH_MAX];
    size_t                count;
    const at_catalog_row *rows = at_catalog_rows(&count);
    bool                  there = find_program("npm", path);
    add(f, "%s", there ? path : "not found");
    for (size_t i = 0; !there && i < count; i++)
        if (rows[i].package.npm && at_catalog_locate(&rows[i], folder, NULL) != AT_OK)
            judge(f, NOTE, "`anytime data get %s` needs it; run: apt-get install npm",
                  rows[i].name);
}

/* Starts a program whose output goes to a pipe; 0 or an error number. */
static int start_piped(const char *const *words, int output, pid_t *pid)
{
    posix_spawn_file_actions_t files;
    int                        error = posix_spawn_file_actions_init(&files);
    assert(words[0]);
    if (error) return error;
    error = posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
    if (!error) error = posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    if (!error)
        error = posix_spawn(pid, words[0], &files, NULL, (char *const *)(uintptr_t)words, environ);
    posix_spawn_file_actions_destroy(&files);
    return error;
}

/* Reads to the end, or until nothing has come for ten seconds; false: it is not over. */
static bool read_all(int fd, char *text, size_t size)
{
    enum { PATIENCE_MS = 10000 };
    size_t used = 0;
    assert(size > 1);
    for (;;) {
        struct pollfd output = {.fd = fd, .events = POLLIN};
        int           ready = poll(&output, 1, PATIENCE_MS);
        if (ready < 0 && errno == EINTR) continue;
        ssize_t got = ready == 1 ? read(fd, text + used, size - 1 - used) : -1;
        if (got > 0) used += (size_t)got;
        text[used] = '\0';
        if (got <= 0) return got == 0;
    }
}

/* The first line that a program prints; false if it fails. */
static bool read_line_of(const char *const *words, char *line, size_t size)
{
    int   ends[2], status = 0;
    pid_t pid;
    assert(words[0]);
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    int error = start_piped(words, ends[1], &pid);
    close(ends[1]);
    bool whole = !error && read_all(ends[0], line, size);
    close(ends[0]);
    if (error) return false;
    if (!whole) kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    line[strcspn(line, "\n")] = '\0';
    return whole && line[0] && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Asked without importing it, which takes seconds. */
static bool find_torch(finding *f, const char *python)
{
    static const char code[] = "import importlib.metadata as m, sys; "
                               "print(m.version('torch'), 'for Python', sys.version.split()[0])";
    const char *const words[] = {python, "-c", code, NULL};
    char              line[160];
    if (access(python, X_OK) != 0 || !read_line_of(words, line, sizeof line)) return false;
    add(f, "%s%s in %s", f->found[0] ? "; " : "", line, python);
    return true;
}

/* Debian's torch belongs to Debian's Python, which need not be the first on PATH. */
static void probe_torch(finding *f)
{
    static const char debian[] = "/usr/bin/python3";
    char              first[PATH_MAX], real_first[PATH_MAX], real_debian[PATH_MAX];
    bool              has_first = find_program("python3", first) && realpath(first, real_first);
    bool same = has_first && realpath(debian, real_debian) && strcmp(real_first, real_debian) == 0;
    bool on_path = has_first && find_torch(f, first);
    bool in_debian = !same && find_torch(f, debian);
    bool debians = in_debian || (same && on_path);
    f->facts = json_pack("{s:b, s:b}", "python3", (int)on_path, "debian", (int)debians);
    if (!on_path && !in_debian) {
        add(f, "not found");
        judge(f, NOTE, "PyTorch scripts cannot be workers; run: apt-get install python3-torch");
    } else if (!on_path) {
        judge(f, NOTE, "python3 on PATH has none: anytime run -n 2 -- %s train.py", debian);
    }
}

static void probe_data(finding *f)
{
    char                  folder[PATH_MAX];
    size_t                count, here = 0;
    const at_catalog_row *rows = at_catalog_rows(&count);
    f->facts = json_object();
    for (size_t i = 0; i < count; i++) {
        bool there = at_catalog_locate(&rows[i], folder, NULL) == AT_OK;
        add(f, "%s%s %s%s", i ? ", " : "", rows[i].name, there ? "in " : "not downloaded",
            there ? folder : "");
        json_object_set_new(f->facts, rows[i].name, there ? json_string(folder) : json_null());
        here += there;
    }
    if (here == 0)
        judge(f, NOTE, "run: anytime data get %s; until then, use --data synthetic", rows[0].name);
}

/* ---- operating system and hardware ----------------------------------------------------------- */

enum { LINE_SIZE = 512 };

/* Finds the first line of the file with this beginning; returns the rest of the line. */
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

static void probe_system(finding *f)
{
    struct utsname names;
    char           release[LINE_SIZE];
    if (uname(&names) != 0) {
        add(f, "unknown");
        return;
    }
    add(f, "%s %s %s", names.sysname, names.release, names.machine);
    if (read_line("/etc/os-release", "PRETTY_NAME=", release))
        add(f, ", %.*s", (int)strcspn(release + (*release == '"'), "\""),
            release + (*release == '"'));
}

static void probe_processor(finding *f)
{
    char        model[LINE_SIZE];
    const char *name = "unknown";
    if (read_line("/proc/cpuinfo", "model name", model)) name = model + strspn(model, "\t :");
    add(f, "%s", name);
#if defined(__x86_64__)
    bool avx2 = __builtin_cpu_supports("avx2"), fma = __builtin_cpu_supports("fma");
    bool avx512 = __builtin_cpu_supports("avx512f");
    add(f, "; AVX2 %s, FMA %s, AVX-512 %s", avx2 ? "yes" : "no", fma ? "yes" : "no",
        avx512 ? "yes" : "no");
    if (at_isa_is_limited()) add(f, "; limited to AVX2 by ANYTIME_ISA");
    f->facts = json_pack("{s:s, s:b, s:b, s:b, s:b}", "model", name, "avx2", avx2, "fma", fma,
                         "avx512f", avx512, "limited", at_isa_is_limited());
#endif
}

/* Processor limit of a control group in cores, from a file with "QUOTA PERIOD"; 0: none. */
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

/* The smallest limit of our control group and its parents (control groups version 2). */
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

static void probe_cores(finding *f)
{
    uint32_t cores = at_machine_cores();
    long     online = sysconf(_SC_NPROCESSORS_ONLN);
    double   quota = tightest_quota();
    add(f, "%u available of %ld", cores, online);
    if (quota > 0) add(f, ", limited to %.3g cores by a control group", quota);
    f->facts = json_pack("{s:i, s:i, s:o}", "at_hand", (int)cores, "online", (int)online, "quota",
                         quota > 0 ? json_real(quota) : json_null());
    if (quota > 0 && quota < cores)
        judge(f, NOTE,
              "use at most --workers %u: the kernel would suspend more of them in the "
              "middle of a round",
              quota < 1 ? 1 : (unsigned)quota);
    if (cores == 1)
        judge(f, NOTE,
              "workers will share one core; --sample-time makes them behave like "
              "separate machines");
}

static void probe_load(finding *f)
{
    double load[3];
    if (getloadavg(load, 3) != 3) {
        add(f, "unknown");
        return;
    }
    add(f, "%.2f %.2f %.2f (load average over 1, 5 and 15 minutes)", load[0], load[1], load[2]);
    if (load[0] > 0.5 * at_machine_cores())
        judge(f, NOTE, "other programs are running: timings will vary");
}

static void probe_memory(finding *f)
{
    at_memory memory = at_machine_memory();
    double    total = (double)memory.total, available = (double)memory.available;
    add(f, "%.1f GB, %.1f GB available", total / 1e9, available / 1e9);
    f->facts = json_pack("{s:I, s:I}", "total_bytes", (json_int_t)total, "available_bytes",
                         (json_int_t)available);
    if (available < 0.5e9)
        judge(f, NOTE,
              "little memory is left: use few workers, a small model and a small data set");
}

static void probe_folder(finding *f)
{
    struct statvfs disk;
    char           here[PATH_MAX];
    if (!getcwd(here, sizeof here) || statvfs(".", &disk) != 0) {
        add(f, "cannot be read");
        judge(f, NOTE, "change to a folder that exists, or give --run DIR");
        return;
    }
    double free_bytes = (double)disk.f_bavail * (double)disk.f_frsize;
    bool   writable = access(".", W_OK) == 0;
    add(f, "%.200s, %s, %.1f GB free", here, writable ? "writable" : "not writable",
        free_bytes / 1e9);
    f->facts = json_pack("{s:b, s:I}", "writable", writable, "free_bytes", (json_int_t)free_bytes);
    if (!writable) judge(f, NOTE, "change to a writable folder, or give --run DIR");
    if (free_bytes < 1e8)
        judge(f, NOTE, "the disk is almost full: use --record none, or give --run DIR");
}

/* ---- processes, shared memory, sleeping ------------------------------------------------------ */

/* These probes run in a child process made like a worker, for some tens of milliseconds each. */
enum { TRIPS = 200, SLEEPS = 25, READINGS = 1000 };
static const at_ns TIMEOUT = AT_MS(400), SLEEP = AT_MS(1);

typedef struct shared {
    at_bell          to_child, to_parent;
    _Atomic uint32_t sent, answered;
    at_ns            overshoot[SLEEPS];
    int              idle_error; /* errno of the request for idle priority; 0: granted */
} shared;

static int compare_ns(const void *a, const void *b)
{
    at_ns x = *(const at_ns *)a, y = *(const at_ns *)b;
    return (x > y) - (x < y);
}

/* Runs `main` in a child and `parent` (may be NULL) here, then waits for the child. */
static at_err with_child(int (*main)(void *), at_err (*parent)(shared *, at_fail *), shared *s,
                         at_fail *fail)
{
    pid_t pid;
    int   status = 0;
    char  end[64];
    AT_TRY(at_child_fork(main, s, &pid, fail));
    at_err err = parent ? parent(s, fail) : AT_OK;
    if (err) {
        at_child_end(pid);
        return err;
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    if (status == 0) return AT_OK;
    return at_fail_set(fail, AT_ERR_FAILED, NULL, "a child process was %s",
                       at_child_status(status, end, sizeof end));
}

/* The same with new shared data, which the caller releases with munmap; NULL: judged. */
static shared *run_child(int (*main)(void *), at_err (*parent)(shared *, at_fail *), finding *f)
{
    at_fail fail = {0};
    shared *s = at_child_share(sizeof *s, &fail);
    at_err  err = s ? with_child(main, parent, s, &fail) : fail.err;
    if (!err) return s;
    add(f, "%s", fail.text);
    judge(f, PROBLEM, "workers are processes with shared memory: %s",
          fail.hint[0] ? fail.hint : "they do not work here");
    if (s) munmap(s, sizeof *s);
    return NULL;
}

/* Waits for the n-th message; false after the timeout. */
static bool await(at_bell *bell, _Atomic uint32_t *count, uint32_t n)
{
    at_ns until = at_clock_now() + TIMEOUT;
    for (;;) {
        uint32_t heard = at_bell_heard(bell);
        if (atomic_load(count) >= n) return true;
        if (at_clock_now() >= until) return false;
        at_bell_wait(bell, heard, 1, AT_BELL_ALL, until, 0);
    }
}

static int echo_messages(void *self)
{
    shared *s = self;
    for (uint32_t n = 1; n <= TRIPS; n++) {
        if (!await(&s->to_child, &s->sent, n)) return AT_ERR_FAILED;
        atomic_store(&s->answered, n);
        at_bell_ring(&s->to_parent);
    }
    return 0;
}

static at_err send_messages(shared *s, at_fail *fail)
{
    for (uint32_t n = 1; n <= TRIPS; n++) {
        atomic_store(&s->sent, n);
        at_bell_ring(&s->to_child);
        if (!await(&s->to_parent, &s->answered, n))
            return at_fail_set(fail, AT_ERR_FAILED, "is futex() forbidden here?",
                               "a child process did not wake up");
    }
    return AT_OK;
}

static void probe_processes(finding *f)
{
    at_ns   begin = at_clock_now();
    shared *s = run_child(echo_messages, send_messages, f);
    if (!s) return;
    double us = 1e6 * at_seconds(at_clock_now() - begin) / TRIPS;
    add(f, "fork, shared memory and futex work; round trip %.3g us", us);
    f->facts = json_pack("{s:f}", "round_trip_seconds", us / 1e6);
    munmap(s, sizeof *s);
}

static int become_idle(void *self)
{
    shared            *s = self;
    struct sched_param none = {0};
    s->idle_error = sched_setscheduler(0, SCHED_IDLE, &none) == 0 ? 0 : errno;
    return 0;
}

static void probe_idle(finding *f)
{
    shared *s = run_child(become_idle, NULL, f);
    if (!s) return;
    add(f, "%s", s->idle_error ? strerror(s->idle_error) : "SCHED_IDLE is allowed");
    if (s->idle_error)
        judge(f, NOTE,
              "evaluation competes with training for the processor: use a large --eval-every");
    munmap(s, sizeof *s);
}

static void probe_clock(finding *f)
{
    at_ns begin = at_clock_now(), last = begin, step = AT_NEVER;
    for (int i = 0; i < READINGS; i++) {
        at_ns now = at_clock_now();
        assert(now >= last);
        if (now > last && now - last < step) step = now - last;
        last = now;
    }
    double cost = 1e9 * at_seconds(last - begin) / READINGS;
    if (step == AT_NEVER)
        add(f, "did not advance during %d readings", READINGS);
    else
        add(f, "resolution %lld ns, %.3g ns per reading", (long long)step, cost);
    f->facts =
        json_pack("{s:f, s:f}", "step_seconds", at_seconds(step), "reading_seconds", cost / 1e9);
    if (step > AT_US(10) || cost > 2000)
        judge(f, NOTE, "the clock is slow or coarse: micro-batches should take 1 ms or more");
}

static int oversleep(void *self)
{
    shared *s = self;
    for (int i = 0; i < SLEEPS; i++) {
        at_ns until = at_clock_now() + SLEEP;
        at_clock_sleep_until(until);
        s->overshoot[i] = at_clock_now() - until;
    }
    return 0;
}

static void probe_sleep(finding *f)
{
    shared *s = run_child(oversleep, NULL, f);
    char    median[32], most[32];
    if (!s) return;
    qsort(s->overshoot, SLEEPS, sizeof *s->overshoot, compare_ns);
    at_ns middle = s->overshoot[SLEEPS / 2], worst = s->overshoot[SLEEPS - 1];
    add(f, "a sleep of 1 ms takes %s longer (median), %s at worst",
        at_text_show_duration(median, sizeof median, middle),
        at_text_show_duration(most, sizeof most, worst));
    f->facts = json_pack("{s:f, s:f}", "overshoot_seconds_median", at_seconds(middle),
                         "overshoot_seconds_max", at_seconds(worst));
    if (middle > SLEEP / 5)
        judge(f, NOTE,
              "induced delays and --sample-time are inexact for rounds shorter than about %s",
              at_text_show_duration(most, sizeof most, 20 * middle));
    munmap(s, sizeof *s);
}

/* ---- the verb -------------------------------------------------------------------------------- */

static const probe probes[] = {{"anytime", probe_build},
                               {"libraries", probe_libraries},
                               {"optional", probe_parts},
                               {"engine", probe_engine},
                               {"openblas", probe_blas},
                               {"gnuplot", probe_gnuplot},
                               {"mpi", probe_mpi},
                               {"npm", probe_npm},
                               {"pytorch", probe_torch},
                               {"data sets", probe_data},
                               {"system", probe_system},
                               {"processor", probe_processor},
                               {"cores", probe_cores},
                               {"load", probe_load},
                               {"memory", probe_memory},
                               {"this folder", probe_folder},
                               {"processes", probe_processes},
                               {"idle priority", probe_idle},
                               {"clock", probe_clock},
                               {"sleep", probe_sleep}};

/* Findings per verdict, and all of them as JSON. */
typedef struct report {
    unsigned count[VERDICTS];
    json_t  *findings;
} report;

static void print_finding(const probe *p, const finding *f)
{
    size_t columns = at_table_columns(stdout);
    int    indent = printf("%-8s %-13s ", verdict_name[f->verdict], p->what);
    at_table_print_wrapped(stdout, f->found, (size_t)indent, columns);
    if (!f->advice[0]) return;
    indent = printf("%-8s %-13s -> ", "", "");
    at_table_print_wrapped(stdout, f->advice, (size_t)indent, columns);
}

static void add_json(report *r, const probe *p, const finding *f)
{
    const char *advice = f->advice[0] ? f->advice : NULL;
    json_t     *entry = json_pack("{s:s, s:s, s:s, s:s?}", "what", p->what, "verdict",
                                  verdict_name[f->verdict], "found", f->found, "advice", advice);
    if (f->facts) json_object_set(entry, "facts", f->facts);
    json_array_append_new(r->findings, entry);
}

static void examine(report *r, const probe *p, bool print)
{
    finding f = {0};
    p->look(&f);
    assert(f.found[0]);
    if (f.verdict != OK) assert(f.advice[0]);
    r->count[f.verdict]++;
    if (print)
        print_finding(p, &f);
    else
        add_json(r, p, &f);
    json_decref(f.facts);
}

static at_err conclude(report *r, bool json, at_fail *fail)
{
    unsigned problems = r->count[PROBLEM], notes = r->count[NOTE];
    if (json)
        AT_TRY(at_print_json_take(json_pack("{s:s, s:i, s:i, s:o}", "anytime", ANYTIME_VERSION,
                                            "problems", (int)problems, "notes", (int)notes,
                                            "findings", r->findings),
                                  fail));
    else if (problems == 0)
        printf("\nanytime can train on this machine; %u note%s\n", notes, notes == 1 ? "" : "s");
    if (problems == 0) return AT_OK;
    return at_fail_set(fail, AT_ERR_FAILED, "follow the advice after each arrow (->)",
                       "doctor found %u problem%s", problems, problems == 1 ? "" : "s");
}

at_err at_verb_doctor(at_parsed *parsed, const char *command, at_fail *fail)
{
    bool   json = parsed->settings.json;
    report r = {.findings = json ? json_array() : NULL};
    (void)command;
    AT_TRY(at_options_refuse_words(parsed, fail));
    for (size_t i = 0; i < sizeof probes / sizeof *probes; i++) examine(&r, &probes[i], !json);
    return conclude(&r, json, fail);
}
