#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "world/process/alive.h"
#include "world/process/failure_detector.h"
#include "world/process/launcher.h"
#include "world/process/signals.h"

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

static int clear_environment(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) unsetenv(variables[i]);
    return 0;
}

static void a_plain_start_has_no_launcher(void **state)
{
    (void)state;
    at_launcher launcher = at_launcher_detect();
    assert_null(launcher.name);
    assert_int_equal(launcher.rank, 0);
    assert_int_equal(launcher.size, 1);
}

static void open_mpi_sets_rank_size_and_local_size(void **state)
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

static void hydra_and_slurm_are_detected_by_their_variables(void **state)
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

static void a_slurm_batch_shell_does_not_count(void **state)
{
    (void)state;
    setenv("SLURM_NTASKS", "64", 1);
    setenv("SLURM_PROCID", "0", 1);
    setenv("SLURM_STEP_NUM_TASKS", "64", 1);
    assert_null(at_launcher_detect().name);
}

static void inconsistent_values_are_ignored(void **state)
{
    static const char *const sizes[] = {"", "many", "-1", "2", "99999999999"};
    (void)state;
    setenv("OMPI_COMM_WORLD_RANK", "2", 1);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        setenv("OMPI_COMM_WORLD_SIZE", sizes[i], 1);
        assert_null(at_launcher_detect().name);
    }
}

static void survival_text_depends_on_recovery(void **state)
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
    assert_non_null(strstr(at_launcher_survival(&launcher), "continues"));
}

static void no_setting_lets_a_job_of_srun_recover(void **state)
{
    (void)state;
    setenv("PMIX_RANK", "0", 1);
    setenv("SLURM_STEP_NUM_TASKS", "2", 1);
    setenv("OMPI_MCA_orte_enable_recovery", "1", 1);
    at_launcher launcher = at_launcher_detect();
    assert_string_equal(launcher.name, "PMIx");
    assert_false(launcher.recovers);
    assert_non_null(strstr(at_launcher_survival(&launcher), "srun ends all ranks"));
}

/* ---- failure detector ---------------------------------------------------------------------- */

static void a_process_without_finished_work_is_granted_a_minute(void **state)
{
    (void)state;
    at_failure_detector detector;
    at_failure_detector_init(&detector, AT_SEC(5), 0);
    at_failure_detector_beat(&detector, AT_SEC(6), false);
    assert_false(at_failure_detector_is_gone(&detector, AT_SEC(6) + AT_SEC(60)));
    assert_true(at_failure_detector_is_gone(&detector, AT_SEC(6) + AT_SEC(61)));
}

static void frequent_messages_shorten_the_patience_to_half_a_minute(void **state)
{
    (void)state;
    at_failure_detector detector;
    at_failure_detector_init(&detector, 0, 0);
    for (int i = 1; i <= 100; i++) at_failure_detector_beat(&detector, AT_MS(10) * i, true);
    assert_false(at_failure_detector_is_gone(&detector, AT_SEC(31)));
    assert_true(at_failure_detector_is_gone(&detector, AT_SEC(31) + 1));
}

static void a_lease_replaces_the_patience_after_the_first_work(void **state)
{
    (void)state;
    at_failure_detector detector;
    at_failure_detector_init(&detector, 0, AT_SEC(5));
    assert_false(at_failure_detector_is_gone(&detector, AT_SEC(60)));
    at_failure_detector_beat(&detector, AT_SEC(4), true);
    assert_false(at_failure_detector_is_gone(&detector, AT_SEC(9)));
    assert_true(at_failure_detector_is_gone(&detector, AT_SEC(9) + 1));
}

static void patience_is_ten_times_the_longest_silence(void **state)
{
    (void)state;
    at_failure_detector detector;
    at_failure_detector_init(&detector, 0, 0);
    at_failure_detector_beat(&detector, AT_SEC(5), true);
    at_failure_detector_beat(&detector, AT_SEC(6), true);
    assert_false(at_failure_detector_is_gone(&detector, AT_SEC(56)));
    assert_true(at_failure_detector_is_gone(&detector, AT_SEC(56) + 1));
}

static void time_without_listening_does_not_count(void **state)
{
    (void)state;
    at_listening_clock  clock = {0};
    at_failure_detector detector;
    at_failure_detector_init(&detector, at_listening_clock_now(&clock, AT_SEC(100)), 0);
    at_failure_detector_beat(&detector, at_listening_clock_now(&clock, AT_SEC(100) + AT_MS(20)),
                             true);
    assert_int_equal(clock.listened, AT_MS(20));
    /* This process was stopped for a quarter of an hour. */
    at_ns after = at_listening_clock_now(&clock, AT_SEC(1000));
    assert_false(at_failure_detector_is_gone(&detector, after));
    assert_true(after - AT_MS(20) <= AT_MS(100));
}

/* ---- processes of this machine ------------------------------------------------------------- */

static void a_process_is_identified_by_pid_and_start_time(void **state)
{
    (void)state;
    uint64_t born = at_alive_born(getpid());
    assert_true(born > 0);
    assert_true(at_alive(getpid(), born));
    assert_false(at_alive(getpid(), born + 1)); /* a reused pid */
    pid_t child = fork();
    if (child == 0) _exit(0);
    siginfo_t ended;
    waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT); /* a zombie */
    assert_int_equal(at_alive_born(child), 0);
    waitpid(child, NULL, 0);
    assert_int_equal(at_alive_born(child), 0);
}

/* ---- signals --------------------------------------------------------------------------------- */

static bool is_default(int number)
{
    struct sigaction now;
    assert_int_equal(sigaction(number, NULL, &now), 0);
    return now.sa_handler == SIG_DFL;
}

/* `timeout` sends one request twice; the second may come when the run has stopped already. */
static void a_stop_is_still_one_request_after_the_run(void **state)
{
    (void)state;
    at_bell bell = {0};
    at_signals_open(&bell);
    assert_false(at_signals_stop());
    raise(SIGTERM);
    assert_true(at_signals_stop());
    at_signals_close();
    assert_false(is_default(SIGINT));
    assert_false(is_default(SIGTERM));
    assert_true(is_default(SIGUSR1));
    /* The next run in this process ends without a stop. */
    at_signals_open(&bell);
    assert_false(at_signals_stop());
    at_signals_close();
    assert_true(is_default(SIGINT));
    assert_true(is_default(SIGTERM));
}

static void handlers_of_the_program_are_restored_even_after_a_stop(void **state)
{
    (void)state;
    at_bell bell = {0};
    signal(SIGTERM, SIG_IGN);
    at_signals_open(&bell);
    raise(SIGTERM);
    assert_true(at_signals_stop());
    at_signals_close();
    assert_true(signal(SIGTERM, SIG_DFL) == SIG_IGN);
    signal(SIGINT, SIG_DFL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_plain_start_has_no_launcher, clear_environment),
        cmocka_unit_test_setup(open_mpi_sets_rank_size_and_local_size, clear_environment),
        cmocka_unit_test_setup(hydra_and_slurm_are_detected_by_their_variables, clear_environment),
        cmocka_unit_test_setup(a_slurm_batch_shell_does_not_count, clear_environment),
        cmocka_unit_test_setup(inconsistent_values_are_ignored, clear_environment),
        cmocka_unit_test_setup(survival_text_depends_on_recovery, clear_environment),
        cmocka_unit_test_setup(no_setting_lets_a_job_of_srun_recover, clear_environment),
        cmocka_unit_test(a_process_without_finished_work_is_granted_a_minute),
        cmocka_unit_test(frequent_messages_shorten_the_patience_to_half_a_minute),
        cmocka_unit_test(a_lease_replaces_the_patience_after_the_first_work),
        cmocka_unit_test(patience_is_ten_times_the_longest_silence),
        cmocka_unit_test(time_without_listening_does_not_count),
        cmocka_unit_test(a_process_is_identified_by_pid_and_start_time),
        cmocka_unit_test(a_stop_is_still_one_request_after_the_run),
        cmocka_unit_test(handlers_of_the_program_are_restored_even_after_a_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
