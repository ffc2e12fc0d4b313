/* Which cores workers get: one each, or those of a memory node, never one that is not allowed. */
#include "base/placement.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static cpu_set_t set_of(at_cores cores)
{
    cpu_set_t set;
    memcpy(&set, cores.bits, sizeof set);
    return set;
}

/* The first cores that this process may use. */
static uint32_t allowed_cores(unsigned *core, uint32_t max)
{
    cpu_set_t all;
    uint32_t  count = 0;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    for (unsigned i = 0; i < CPU_SETSIZE && count < max; i++)
        if (CPU_ISSET(i, &all)) core[count++] = i;
    return count;
}

static void write_node(const char *folder, unsigned node, const char *list)
{
    char path[256];
    snprintf(path, sizeof path, "%s/node%u", folder, node);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/node%u/cpulist", folder, node);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(list, file);
    assert_int_equal(fclose(file), 0);
}

static void remove_node(const char *folder, unsigned node)
{
    char path[256];
    snprintf(path, sizeof path, "%s/node%u/cpulist", folder, node);
    unlink(path);
    snprintf(path, sizeof path, "%s/node%u", folder, node);
    rmdir(path);
}

static void workers_take_the_allowed_cores_in_turn(void **state)
{
    unsigned core[64];
    uint32_t count = allowed_cores(core, 64);
    (void)state;
    for (uint32_t i = 0; i < 2 * count && count < 64; i++) {
        cpu_set_t set = set_of(at_placement_of(AT_BIND_CORE, i, "/nowhere"));
        assert_int_equal(CPU_COUNT(&set), 1);
        assert_true(CPU_ISSET(core[i % count], &set));
    }
    assert_false(at_placement_of(AT_BIND_NONE, 0, "/nowhere").known);
}

/* Node 1 is missing, node 3 has no core that we may use, node 4 is nonsense. */
static void workers_take_memory_nodes_in_turn(void **state)
{
    unsigned core[2] = {0, 0};
    uint32_t count = allowed_cores(core, 2);
    char     folder[] = "/tmp/anytime-nodes-XXXXXX", list[64];
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(list, sizeof list, "%u\n", core[0]);
    write_node(folder, 0, list);
    snprintf(list, sizeof list, "%u-%u,1022\n", core[count - 1], core[count - 1]);
    write_node(folder, 2, list);
    write_node(folder, 3, "1023\n");
    write_node(folder, 4, "many\n");
    for (uint32_t i = 0; i < 4; i++) {
        cpu_set_t set = set_of(at_placement_of(AT_BIND_NUMA, i, folder));
        assert_int_equal(CPU_COUNT(&set), 1);
        assert_true(CPU_ISSET(i % 2 == 0 ? core[0] : core[count - 1], &set));
    }
    for (unsigned node = 0; node < 5; node++) remove_node(folder, node);
    assert_int_equal(rmdir(folder), 0);
}

static void without_nodes_a_worker_may_use_every_core(void **state)
{
    cpu_set_t all, set = set_of(at_placement_of(AT_BIND_NUMA, 3, "/nowhere"));
    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    assert_true(CPU_EQUAL(&all, &set));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_take_the_allowed_cores_in_turn),
        cmocka_unit_test(workers_take_memory_nodes_in_turn),
        cmocka_unit_test(without_nodes_a_worker_may_use_every_core),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
