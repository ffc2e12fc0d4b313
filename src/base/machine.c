#include "base/machine.h"

#include <assert.h>
#include <dirent.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

uint32_t at_machine_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return (uint32_t)CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (uint32_t)online : 1;
}

uint32_t at_machine_cores_all(void)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (uint32_t)online : at_machine_cores();
}

at_memory at_machine_memory(void)
{
    at_memory memory = {0};
    uint64_t  kilobytes;
    char      line[256];
    FILE     *file = fopen("/proc/meminfo", "re");
    if (!file) return memory;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "MemTotal: %" SCNu64, &kilobytes) == 1) memory.total = kilobytes << 10;
        if (sscanf(line, "MemAvailable: %" SCNu64, &kilobytes) == 1)
            memory.available = kilobytes << 10;
    }
    fclose(file);
    assert(memory.available <= memory.total);
    return memory;
}

bool at_machine_boot_id(char text[AT_BOOT_ID_SIZE + 1])
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    bool  known = file && fgets(text, AT_BOOT_ID_SIZE + 1, file) && strlen(text) == AT_BOOT_ID_SIZE;
    if (file) fclose(file);
    return known;
}

uint32_t at_machine_threads(void)
{
    uint32_t count = 0;
    DIR     *threads = opendir("/proc/self/task");
    if (!threads) return 1;
    for (const struct dirent *entry; (entry = readdir(threads));) count += entry->d_name[0] != '.';
    closedir(threads);
    return count > 0 ? count : 1;
}

int at_machine_core(void)
{
    return sched_getcpu();
}

void at_machine_pin(int core)
{
    static cpu_set_t before;
    static bool      known;
    cpu_set_t        one;
    if (!known) known = sched_getaffinity(0, sizeof before, &before) == 0;
    CPU_ZERO(&one);
    if (core >= 0 && core < CPU_SETSIZE) CPU_SET((unsigned)core, &one);
    if (known) sched_setaffinity(0, sizeof one, core >= 0 ? &one : &before);
}

_Static_assert(sizeof(cpu_set_t) == sizeof((at_cores){0}.bits), "at_cores has room for all cores");

at_cores at_machine_stay(void)
{
    at_cores  cores = {0};
    cpu_set_t now, one;
    int       core = sched_getcpu();
    if (core < 0 || core >= CPU_SETSIZE || sched_getaffinity(0, sizeof now, &now) != 0)
        return cores;
    CPU_ZERO(&one);
    CPU_SET((unsigned)core, &one);
    memcpy(cores.bits, &now, sizeof now);
    cores.known = sched_setaffinity(0, sizeof one, &one) == 0;
    return cores;
}

void at_machine_unstay(const at_cores *cores)
{
    cpu_set_t before;
    if (!cores->known) return;
    memcpy(&before, cores->bits, sizeof before);
    sched_setaffinity(0, sizeof before, &before);
}

void at_machine_flush_denormals(void)
{
#if defined(__x86_64__)
    enum { RESULTS = 0x8000, OPERANDS = 0x0040 };
    _mm_setcsr(_mm_getcsr() | RESULTS | OPERANDS);
#endif
}
