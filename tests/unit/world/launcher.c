#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "world/process/failure_detector.h"
#include "world/process/launcher.h"

/* ---- launchers ----------------------------------------------------------------------------- */

static const char *const variables[] = {"OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMM_WORLD_SIZE",
                                        "OMPI_COMM_WORLD_LOCAL_SIZE",
                                        "PMIX_RANK",
                                        "PMI_RANK",
                                        "PMI_SIZE",
                                        "MPI_LOCALNRANKS",
                                        "SLURM_PROCID",
                                        "SLURM_STEP_ID",
                                        "SLURM_STEP_NUM_TASKS",
                                        "SLURM_NTASKS",
                                        "OMPI_MCA_orte_enable_recovery"};

static int forget_everything(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) unsetenv(variables[i]);
    return 0;
}

static void nobody_started_a_plain_program(void **state)
{
    (void)state;
    at_launcher launcher = at_launcher_detect();
    assert_null(launcher.name);
    assert_int_equal(launcher.rank, 0);
    assert_int_equal(launcher.size, 1);
}

static void open_mpi_tells_rank_size_and_neighbours(void **state)
{
    (void)state;
    setenv("OMPI_COMM_WORLD_RANK", "3", 1);
    setenv("OMPI_COMM_WORLD_SIZE", "11", 1);
    setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "4", 1);
    at_launcher launcher = at_launcher_detect();
    assert_string_equal(launcher.name, "Open MPI");
    assert_int_equal(launcher.rank, 3);
    assert_int_equal(launcher.size, 11);
    assert_int_equal(launcher.local_size, 4);
}

static void hydra_and_slurm_are_known_by_their_own_words(void **state)
{
    (void)state;
    setenv("SLURM_STEP_ID", "0", 1);
    setenv("SLURM_PROCID", "1", 1);
    setenv("SLURM_STEP_NUM_TASKS", "4", 1);
    assert_string_equal(at_launcher_detect().name, "Slurm");
    setenv("PMI_RANK", "1", 1);
    setenv("PMI_SIZE", "2", 1);
    assert_string_equal(at_launcher_detect().name, "PMI");
    setenv("PMIX_RANK", "2", 1);
    assert_string_equal(at_launcher_detect().name, "PMIx");
    assert_int_equal(at_launcher_detect().size, 4);
}

static void a_batch_shell_of_slurm_is_no_launcher(void **state)
{
    (void)state;
    setenv("SLURM_NTASKS", "64", 1);
    setenv("SLURM_PROCID", "0", 1);
    setenv("SLURM_STEP_NUM_TASKS", "64", 1);
    assert_null(at_launcher_detect().name);
}

static void words_that_make_no_sense_are_not_there(void **state)
{
    static const char *const sizes[] = {"", "many", "-1", "2", "99999999999"};
    (void)state;
    setenv("OMPI_COMM_WORLD_RANK", "2", 1);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        setenv("OMPI_COMM_WORLD_SIZE", sizes[i], 1);
        assert_null(at_launcher_detect().name);
    }
}

static void what_a_death_does_depends_on_recovery(void **state)
{
    (void)state;
    setenv("OMPI_COMM_WORLD_RANK", "0", 1);
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    at_launcher launcher = at_launcher_detect();
    assert_false(launcher.recovers);
    assert_non_null(strstr(at_launcher_survival(&launcher), "--enable-recovery"));
    setenv("OMPI_MCA_orte_enable_recovery", "1", 1);
    launcher = at_launcher_detect();
    assert_true(launcher.recovers);
    assert_non_null(strstr(at_launcher_survival(&launcher), "goes on"));
}

/* ---- pulses -------------------------------------------------------------------------------- */

static void who_has_finished_nothing_is_given_a_minute(void **state)
{
    (void)state;
    at_failure_detector pulse;
    at_failure_detector_init(&pulse, AT_SEC(5));
    at_failure_detector_beat(&pulse, AT_SEC(6), false);
    assert_false(at_failure_detector_is_gone(&pulse, AT_SEC(6) + AT_SEC(60)));
    assert_true(at_failure_detector_is_gone(&pulse, AT_SEC(6) + AT_SEC(61)));
}

static void who_is_heard_often_is_missed_after_two_seconds(void **state)
{
    (void)state;
    at_failure_detector pulse;
    at_failure_detector_init(&pulse, 0);
    for (int i = 1; i <= 100; i++) at_failure_detector_beat(&pulse, AT_MS(10) * i, true);
    assert_int_equal(at_failure_detector_patience(&pulse), AT_SEC(2));
    assert_false(at_failure_detector_is_gone(&pulse, AT_SEC(3)));
    assert_true(at_failure_detector_is_gone(&pulse, AT_SEC(3) + 1));
}

static void who_is_heard_seldom_is_given_ten_times_as_long(void **state)
{
    (void)state;
    at_failure_detector pulse;
    at_failure_detector_init(&pulse, 0);
    at_failure_detector_beat(&pulse, AT_SEC(3), true);
    at_failure_detector_beat(&pulse, AT_SEC(4), true);
    assert_int_equal(at_failure_detector_patience(&pulse), AT_SEC(30));
}

static void time_in_which_we_did_not_listen_does_not_count(void **state)
{
    (void)state;
    at_listening_clock  ear = {0};
    at_failure_detector pulse;
    at_failure_detector_init(&pulse, at_listening_clock_now(&ear, AT_SEC(100)));
    at_failure_detector_beat(&pulse, at_listening_clock_now(&ear, AT_SEC(100) + AT_MS(20)), true);
    assert_int_equal(ear.listened, AT_MS(20));
    at_ns after =
        at_listening_clock_now(&ear, AT_SEC(1000)); /* we were stopped for a quarter of an hour */
    assert_false(at_failure_detector_is_gone(&pulse, after));
    assert_true(after - AT_MS(20) <= AT_MS(100));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(nobody_started_a_plain_program, forget_everything),
        cmocka_unit_test_setup(open_mpi_tells_rank_size_and_neighbours, forget_everything),
        cmocka_unit_test_setup(hydra_and_slurm_are_known_by_their_own_words, forget_everything),
        cmocka_unit_test_setup(a_batch_shell_of_slurm_is_no_launcher, forget_everything),
        cmocka_unit_test_setup(words_that_make_no_sense_are_not_there, forget_everything),
        cmocka_unit_test_setup(what_a_death_does_depends_on_recovery, forget_everything),
        cmocka_unit_test(who_has_finished_nothing_is_given_a_minute),
        cmocka_unit_test(who_is_heard_often_is_missed_after_two_seconds),
        cmocka_unit_test(who_is_heard_seldom_is_given_ten_times_as_long),
        cmocka_unit_test(time_in_which_we_did_not_listen_does_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
