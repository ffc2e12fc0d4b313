/* What the ranks of an all-reduce know of each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "world/mpi/mpi_replicated_hub.h"

/* A turn is read before it is checked, and nothing is checked after the last one. */
static void a_worker_that_says_too_little_drew_what_was_counted(void **state)
{
    (void)state;
    static at_mpi_replica r; /* rank 0, worker 1 of two */
    at_member             member[2] = {{.id = 1, .used = 40}, {.id = 2, .used = 30, .dropped = 6}};
    at_hub                hub = {.member = member};
    at_turn_message       turn[2] = {{.report.drawn = 1}, {.report.drawn = 50}};
    r = (at_mpi_replica){.workers = 2, .id = 1, .drawn = 48, .host.hub = &hub, .ranks.turn = turn};
    assert_int_equal(at_mpi_replica_drawn(&r, 1), 48); /* as this rank knows itself */
    assert_int_equal(at_mpi_replica_drawn(&r, 2), 50);
    turn[1].report.drawn = 0;
    assert_int_equal(at_mpi_replica_drawn(&r, 2), 36);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_that_says_too_little_drew_what_was_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
