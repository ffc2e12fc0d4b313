#include "base/placement.h"

#include <assert.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const at_bind_name[AT_BIND_KINDS] = {"none", "core", "numa"};

enum { NODES_MAX = 1024 };

static at_cores known(const cpu_set_t *set)
{
    at_cores cores = {.known = CPU_COUNT(set) > 0};
    memcpy(cores.bits, set, sizeof cores.bits);
    return cores;
}

/* Adds the cores of a list such as "0-3,8"; false: it is not one. */
static bool read_list(const char *text, cpu_set_t *set)
{
    while (*text && *text != '\n') {
        char         *end;
        unsigned long first = strtoul(text, &end, 10), last = first;
        if (end == text) return false;
        if (*end == '-') {
            text = end + 1;
            last = strtoul(text, &end, 10);
            if (end == text) return false;
        }
        for (unsigned long core = first; core <= last && core < CPU_SETSIZE; core++)
            CPU_SET(core, set);
        text = *end == ',' ? end + 1 : end;
        if (*end != ',' && *end != '\n' && *end != '\0') return false;
    }
    return true;
}

/* The cores of a node that this thread may use; false: there is no such node, or it has none. */
static bool read_node(const char *folder, uint32_t node, const cpu_set_t *allowed, cpu_set_t *set)
{
    char path[512], text[4096];
    int  size = snprintf(path, sizeof path, "%s/node%u/cpulist", folder, node);
    CPU_ZERO(set);
    FILE *file = size > 0 && (size_t)size < sizeof path ? fopen(path, "re") : NULL;
    if (!file) return false;
    bool good = fgets(text, sizeof text, file) && read_list(text, set);
    fclose(file);
    CPU_AND(set, set, allowed);
    return good && CPU_COUNT(set) > 0;
}

/* Nodes with usable cores; node numbers may have gaps. `chosen` receives the index-th of them. */
static uint32_t count_nodes(const char *folder, const cpu_set_t *allowed, uint32_t index,
                            cpu_set_t *chosen)
{
    uint32_t count = 0;
    for (uint32_t node = 0; node < NODES_MAX; node++) {
        cpu_set_t set;
        if (!read_node(folder, node, allowed, &set)) continue;
        if (count++ == index) *chosen = set;
    }
    return count;
}

static at_cores node_of(const cpu_set_t *allowed, uint32_t index, const char *folder)
{
    cpu_set_t set = *allowed;
    uint32_t  nodes = count_nodes(folder, allowed, index, &set);
    if (nodes > 0 && index >= nodes) count_nodes(folder, allowed, index % nodes, &set);
    return known(&set);
}

static at_cores core_of(const cpu_set_t *allowed, uint32_t index)
{
    cpu_set_t one;
    uint32_t  left = index % (uint32_t)CPU_COUNT(allowed);
    CPU_ZERO(&one);
    for (unsigned core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, allowed) && left-- == 0) CPU_SET(core, &one);
    assert(CPU_COUNT(&one) == 1);
    return known(&one);
}

at_cores at_placement_of(at_bind how, uint32_t index, const char *nodes)
{
    cpu_set_t allowed;
    assert(how < AT_BIND_KINDS);
    if (how == AT_BIND_NONE || sched_getaffinity(0, sizeof allowed, &allowed) != 0 ||
        CPU_COUNT(&allowed) == 0)
        return (at_cores){0};
    return how == AT_BIND_CORE ? core_of(&allowed, index) : node_of(&allowed, index, nodes);
}

void at_placement_bind(at_bind how, uint32_t index)
{
    at_cores cores = at_placement_of(how, index, AT_PLACEMENT_NODES);
    at_machine_unstay(&cores);
}
