#include "base/usage.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    FILE_SIZE = 8192, /* of /proc/PID/net/dev: more than 60 interfaces; the rest is ignored */
    BLOCK_SIZE = 512, /* of ru_inblock and ru_oublock */
    STAT_USER = 14,   /* fields of /proc/PID/stat, counted from 1 */
    STAT_SYSTEM = 15,
    STAT_STATE = 3,
    STATM_RSS = 2,
    STATM_SHARED = 3,
    DEV_IN = 1, /* fields after the interface name */
    DEV_OUT = 9
};

static const at_ns second = 1000000000;

/* Reads a small file of a process; false when it does not exist. */
static bool read_small(const char *proc, int64_t pid, const char *name, char text[FILE_SIZE])
{
    char path[256];
    int  length = snprintf(path, sizeof path, "%s/%" PRId64 "/%s", proc, pid, name);
    assert(length > 0);
    if ((size_t)length >= sizeof path) return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    size_t  size = 0;
    ssize_t got = 1;
    while (size < FILE_SIZE - 1 && got != 0) {
        got = read(fd, text + size, FILE_SIZE - 1 - size);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) break; /* the process has just ended */
        size += (size_t)got;
    }
    close(fd);
    text[size] = '\0';
    return got >= 0;
}

/* The n-th word of a line, counted from 1, as a number; AT_USAGE_UNKNOWN when it is not one. */
static uint64_t word_number(const char *line, int n)
{
    assert(n >= 1);
    for (line += strspn(line, " \t"); n > 1; n--) {
        line += strcspn(line, " \t\n");
        line += strspn(line, " \t");
    }
    if (*line < '0' || *line > '9') return AT_USAGE_UNKNOWN;
    errno = 0;
    uint64_t value = strtoull(line, NULL, 10);
    return errno ? AT_USAGE_UNKNOWN : value;
}

static uint64_t times(uint64_t value, uint64_t unit)
{
    uint64_t product;
    assert(unit > 0);
    if (value == AT_USAGE_UNKNOWN || __builtin_mul_overflow(value, unit, &product))
        return AT_USAGE_UNKNOWN;
    return product;
}

/* Clock ticks as time; 0 when out of range. */
static at_ns ticks(uint64_t value)
{
    long hertz = sysconf(_SC_CLK_TCK);
    assert(hertz > 0);
    uint64_t ns = times(value, (uint64_t)(second / hertz));
    return ns > INT64_MAX / 4 ? 0 : (at_ns)ns;
}

/* "4711 (a name) R 1 ..": the name may contain parentheses, so it ends at the last one. */
static bool read_times(const char *text, at_usage *usage)
{
    const char *name_end = strrchr(text, ')');
    if (!name_end) return false;
    usage->user_ns = ticks(word_number(name_end + 1, STAT_USER - STAT_STATE + 1));
    usage->system_ns = ticks(word_number(name_end + 1, STAT_SYSTEM - STAT_STATE + 1));
    return true;
}

static void read_memory(const char *text, at_usage *usage)
{
    long page = sysconf(_SC_PAGESIZE);
    assert(page > 0);
    usage->rss_bytes = times(word_number(text, STATM_RSS), (uint64_t)page);
    usage->shared_bytes = times(word_number(text, STATM_SHARED), (uint64_t)page);
}

/* The number after "\nNAME:". */
static uint64_t named_number(const char *text, const char *name)
{
    assert(name[0] == '\n');
    const char *line = strstr(text, name);
    return line ? word_number(line + strlen(name), 1) : AT_USAGE_UNKNOWN;
}

static void add_known(uint64_t *sum, uint64_t value)
{
    if (value == AT_USAGE_UNKNOWN) return;
    if (*sum == AT_USAGE_UNKNOWN) *sum = 0;
    if (__builtin_add_overflow(*sum, value, sum)) *sum = AT_USAGE_UNKNOWN;
}

/* "  eth0: 1118704759 37095 ..", after two heading lines without a colon. */
static void read_network(char *text, at_usage *usage)
{
    assert(usage->net_in_bytes == AT_USAGE_UNKNOWN);
    char *rest;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *colon = strchr(line, ':');
        if (!colon) continue;
        *colon = '\0';
        line += strspn(line, " ");
        if (strcmp(line, "lo") == 0) {
            add_known(&usage->loopback_bytes, word_number(colon + 1, DEV_OUT));
            continue;
        }
        add_known(&usage->net_in_bytes, word_number(colon + 1, DEV_IN));
        add_known(&usage->net_out_bytes, word_number(colon + 1, DEV_OUT));
    }
}

static at_usage unknown_usage(int64_t pid)
{
    return (at_usage){.pid = pid,
                      .rss_bytes = AT_USAGE_UNKNOWN,
                      .shared_bytes = AT_USAGE_UNKNOWN,
                      .peak_bytes = AT_USAGE_UNKNOWN,
                      .read_bytes = AT_USAGE_UNKNOWN,
                      .write_bytes = AT_USAGE_UNKNOWN,
                      .net_in_bytes = AT_USAGE_UNKNOWN,
                      .net_out_bytes = AT_USAGE_UNKNOWN,
                      .loopback_bytes = AT_USAGE_UNKNOWN};
}

static at_ns timeval_ns(struct timeval value)
{
    return (at_ns)value.tv_sec * second + (at_ns)value.tv_usec * 1000;
}

static void copy_rusage(const struct rusage *rusage, at_usage *usage)
{
    assert(rusage->ru_maxrss >= 0);
    usage->user_ns = timeval_ns(rusage->ru_utime);
    usage->system_ns = timeval_ns(rusage->ru_stime);
    usage->peak_bytes = (uint64_t)rusage->ru_maxrss << 10;
}

static bool read_process(const char *proc, int64_t pid, at_usage *usage)
{
    char text[FILE_SIZE];
    assert(proc);
    *usage = unknown_usage(pid);
    if (pid <= 0) return false;
    if (!read_small(proc, pid, "stat", text) || !read_times(text, usage)) return false;
    if (read_small(proc, pid, "statm", text)) read_memory(text, usage);
    if (read_small(proc, pid, "io", text)) { /* not readable for processes of other users */
        usage->read_bytes = named_number(text, "\nread_bytes:");
        usage->write_bytes = named_number(text, "\nwrite_bytes:");
    }
    return true;
}

bool at_usage_read_from(const char *proc, int64_t pid, at_usage *usage)
{
    char text[FILE_SIZE];
    if (!read_process(proc, pid, usage)) return false;
    if (read_small(proc, pid, "net/dev", text)) read_network(text, usage);
    return true;
}

/* For the calling process itself, getrusage has exact times and the peak. */
static void read_self(at_usage *usage)
{
    struct rusage rusage;
    if (usage->pid == getpid() && getrusage(RUSAGE_SELF, &rusage) == 0) copy_rusage(&rusage, usage);
}

bool at_usage_read(int64_t pid, at_usage *usage)
{
    if (!at_usage_read_from("/proc", pid, usage)) return false;
    read_self(usage);
    return true;
}

bool at_usage_read_process(int64_t pid, at_usage *usage)
{
    if (!read_process("/proc", pid, usage)) return false;
    read_self(usage);
    return true;
}

void at_usage_ended(int64_t pid, const struct rusage *rusage, at_usage *usage)
{
    assert(pid > 0);
    *usage = unknown_usage(pid);
    copy_rusage(rusage, usage);
    usage->rss_bytes = usage->shared_bytes = 0;
    usage->read_bytes = times((uint64_t)rusage->ru_inblock, BLOCK_SIZE);
    usage->write_bytes = times((uint64_t)rusage->ru_oublock, BLOCK_SIZE);
}

at_ns at_usage_cpu(const at_usage *usage)
{
    at_ns sum;
    if (__builtin_add_overflow(usage->user_ns, usage->system_ns, &sum)) return AT_NEVER;
    return sum;
}
