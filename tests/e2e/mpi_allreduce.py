#!/usr/bin/env python3
"""All-reduce: all ranks are workers, decide alike, keep equal parameters and end together."""
import os
import signal

import support
from support import mpi, tensors

ALLREDUCE = ("--topology", "allreduce")
QUIET = ("--quiet", "--json")
WIDE = ("--data", "synthetic:600,400,10", "--model", "mlp:300,100", "--batch", "16")
NET = "conv 3x3x8 bias=no\nbn\nrelu\nmaxpool 2\ndense 16\nrelu\ndropout keep=0.7\ndense classes\n"


class Bits(mpi.TestCase):
    """MPI sums gradients in its own order: the bits are the same in every run, but differ from
    those of a hub in the last digits of the sums."""

    def both(self, *arguments, ranks=4):
        """One run under all-reduce and one with a hub, with the same number of workers."""
        options = (*arguments, "--eval-every", 0, *QUIET)
        equals = self.train(*options, *ALLREDUCE, ranks=ranks)
        hub = self.train(*options, ranks=ranks + 1)
        for ended in equals, hub:
            self.assertEqual(ended.result["workers"], ranks)
            self.assert_ledger(ended)
        self.assertEqual(equals.result["rules"]["mix"], "replicated")
        self.assertEqual(equals.result["trace_hash"], hub.result["trace_hash"])
        return equals, hub

    def distance(self, one, two):
        """The largest difference of two weights, relative to the largest weight of the tensor."""
        first, second = (tensors.read(ended.folder / "model.safetensors") for ended in (one, two))
        self.assertEqual(first.keys(), second.keys())
        return max(max(abs(a - b) for a, b in zip(first[name], second[name], strict=True)) /
                   max(1e-9, max(map(abs, first[name]))) for name in first)

    def test_two_runs_give_the_same_bits(self):
        first, second = (self.train(*WIDE, "--steps", 120, *ALLREDUCE, *QUIET, ranks=3).result
                         for _ in range(2))
        self.assertEqual(first["params_hash"], second["params_hash"])
        self.assertEqual(first["trace_hash"], second["trace_hash"])

    def test_the_sum_of_two_gradients_has_the_bits_of_a_hub(self):
        """With two ranks there is only one order."""
        for options in ("--optimizer", "adam"), ("--optimizer", "nesterov", "--clip", "0.05"):
            equals, hub = self.both(*WIDE, "--steps", 60, *options, ranks=2)
            self.assertEqual(equals.result["params_hash"], hub.result["params_hash"])

    def test_large_gradients_that_are_summed_early_do_too(self):
        """More than two chunks of 1 MB, with statistics of batch norm at the end."""
        net = self.folder / "large.net"
        net.write_text("dense 700\nbn\nrelu\ndense 900\nrelu\ndense 300\nbn\nrelu\ndense classes\n")
        equals, hub = self.both("--data", "synthetic:400,300,7", "--model", net, "--batch", 40,
                                "--micro-batch", 16, "--steps", 5, ranks=2)
        self.assertEqual(equals.result["params_hash"], hub.result["params_hash"])

    def test_weights_stay_close_to_those_of_a_hub(self):
        for optimizer, lr, bound in (("sgd", 0.1, 1e-5), ("momentum", 0.01, 1e-5),
                                     ("adam", 0.001, 1e-3)):
            with self.subTest(optimizer=optimizer):
                equals, hub = self.both(*WIDE, "--steps", 60, "--optimizer", optimizer,
                                        "--lr", lr)
                distance = self.distance(equals, hub)
                print(f"{optimizer}: differs by {distance:.1e} of the largest weight", flush=True)
                self.assertLess(distance, bound)
                self.assertAlmostEqual(equals.result["train"]["loss"],
                                       hub.result["train"]["loss"], delta=1e-3)

    def test_timed_rounds_and_nets_with_batch_norm_do_too(self):
        net = self.folder / "small.net"
        net.write_text(NET)
        same = ("--data", "synthetic:300,3x12x12,4", "--model", net, "--steps", 6, "--batch", 20,
                "--micro-batch", 8, "--optimizer", "momentum", "--strategy", "amb",
                "--time-limit", "60s")
        self.assertLess(self.distance(*self.both(*same, ranks=3)), 1e-4)

    def test_strategies_that_wait_for_all_learn(self):
        for strategy in ("fmb", "amb", "dbs", "grow", "shrink", "loss", "probe", "local-sgd",
                         "diloco"):
            with self.subTest(strategy=strategy):
                ended = self.train(*support.SMALL, "--strategy", strategy, "--steps", 200,
                                   "--time-limit", "2ms", *ALLREDUCE, *QUIET, ranks=4)
                self.assert_ledger(ended)
                self.assertEqual(ended.result["steps"], 200)
                self.assertGreater(ended.result["test"]["accuracy"], 0.8, ended)

    def test_a_recorded_run_replays(self):
        ended = self.train(*support.SMALL, "--strategy", "amb", "--time-limit", "2ms",
                           "--steps", 100, *ALLREDUCE, ranks=3)
        self.anytime("replay", ended.folder)


class Together(mpi.TestCase):
    def test_all_ranks_end_together_by_time_target_and_epochs(self):
        """If the hubs disagreed, some rank would wait forever."""
        for end in (("--seconds", "300ms"), ("--target", "accuracy=0.7", "--eval-every", 5),
                    ("--epochs", 2)):
            for _ in range(3):
                with self.subTest(end=end):
                    ended = self.train(*support.SMALL, *end, *ALLREDUCE, *QUIET, ranks=3)
                    self.assertIn(ended.result["stopped"], ("seconds", "target", "epochs"))
                    self.assert_ledger(ended)

    def test_only_rank_0_prints(self):
        ended = self.train(*support.SMALL, "--steps", 20, *ALLREDUCE, ranks=3)
        self.assertEqual(ended.out.count("20 steps"), 1, ended)
        rows = support.json.loads((ended.folder / "workers.json").read_text())["workers"]
        self.assertEqual([row["rank"] for row in rows], [0, 1, 2])

    def refused(self, *arguments, says, code=support.USAGE, **options):
        ended = self.train(*support.SMALL, "--steps", 3, *ALLREDUCE, *arguments, code=code,
                           **options)
        self.assertEqual(ended.err.count("anytime: "), 1, ended)
        self.assertIn(says, ended.err, ended)

    def test_impossible_combinations_are_refused_once(self):
        for arguments, says in ((("--strategy", "async"), "does not wait for all"),
                                (("--strategy", "noise"), "the whole gradient of every worker"),
                                (("--comm-delay", "1ms"), "--comm-delay"),
                                (("--workers", 7), "3 ranks: 0 hubs and 3 workers")):
            with self.subTest(arguments=arguments):
                self.refused(*arguments, says=says, ranks=3)

    def test_rank_0_reports_an_error_of_another_rank(self):
        script = self.folder / "rank.sh"
        script.write_text("#!/bin/sh\n[ $OMPI_COMM_WORLD_RANK = 2 ] && other=\"--data $OTHER\"\n"
                          "exec \"$@\" $other\n")
        script.chmod(0o755)
        for data, code in (("nowhere", support.MISSING), ("synthetic:2001,20,5", support.USAGE)):
            with self.subTest(data=data):
                self.refused(says="rank 2 on", code=code, ranks=3, more=[str(script)],
                             env={"OTHER": data})

    def test_a_waiting_rank_sleeps(self):
        run = self.start(*support.SMALL, "--straggler", "speed:1,1,50", "--sample-time", "1ms",
                         "--steps", 1000, *ALLREDUCE, ranks=3)
        pids = [run.wait_working()[i]["pid"] for i in (1, 2)]
        self.assert_sleep(run, pids)


class Losses(mpi.TestCase):
    def slow(self, *arguments, **options):
        return self.endless(*support.SMALL, "--sample-time", "50us", *ALLREDUCE, *arguments,
                            ranks=4, **options)

    def test_a_signal_to_any_rank_stops_the_run(self):
        for worker in (1, 3):
            with self.subTest(worker=worker):
                run = self.slow()
                os.kill(run.workers()[worker]["pid"], signal.SIGTERM)
                ended = run.wait()
                self.assertEqual(ended.code, support.STOPPED, ended)
                self.assertEqual(ended.result["stopped"], "signal")
                self.assert_ledger(ended)
                self.assert_nothing_left(run)

    def test_a_lost_rank_ends_the_run_with_a_checkpoint(self):
        """mpirun --enable-recovery always exits with 0, so the exit code of rank 0 is checked."""
        script = self.folder / "rank.sh"
        script.write_text("#!/bin/sh\n\"$@\"\ncode=$?\n"
                          "[ $OMPI_COMM_WORLD_RANK = 0 ] && echo $code > $CODE\nexit $code\n")
        script.chmod(0o755)
        code = self.folder / "code"
        run = self.slow("--quiet", more=["--enable-recovery", str(script)],
                        env={"CODE": str(code)})
        os.kill(run.workers()[3]["pid"], signal.SIGKILL)
        ended = run.wait()
        result = ended.result
        self.assertEqual(code.read_text(), f"{support.STOPPED}\n", ended)
        self.assertEqual(result["stopped"], "rank lost", ended)
        self.assertEqual(result["checkpoint"], result["steps"], ended)
        self.assertEqual([row["state"] for row in result["worker"]],
                         ["finished", "finished", "lost", "finished"], ended)
        self.assertEqual([row["worker"] for row in result["lost_rounds"]], [2, 3, 4], ended)
        self.assert_ledger(ended)
        self.assert_nothing_left(run)
        self.assert_resumes(run, result["steps"])

    def assert_resumes(self, run, step):
        """First with the same workers, then with an additional hub."""
        for more, ranks, arguments in ((10, 4, ()), (20, 5, ("--topology", "hub"))):
            ended = self.train("--steps", step + more, *QUIET, *arguments, ranks=ranks,
                               resume=run.folder)
            self.assertEqual(ended.result["steps"], step + more, ended)
            self.assert_ledger(ended)

    def test_a_resumed_run_ends_with_the_bits_of_an_uninterrupted_one(self):
        arguments = (*WIDE, "--optimizer", "adam", *ALLREDUCE)
        whole = self.train(*arguments, "--steps", 40, *QUIET, ranks=3).result
        first = self.train(*arguments, "--steps", 17, *QUIET, ranks=3)
        ended = self.train("--steps", 40, *QUIET, ranks=3, resume=first.folder)
        self.assertEqual(ended.result["params_hash"], whole["params_hash"], ended)

    def test_the_others_end_when_rank_0_is_lost(self):
        run = self.slow(more=["--enable-recovery"])
        os.kill(run.workers()[1]["pid"], signal.SIGKILL)
        run.wait()
        self.assert_nothing_left(run)


if __name__ == "__main__":
    mpi.main()
