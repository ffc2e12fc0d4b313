#!/usr/bin/env python3
"""Ranks of mpirun: the bits of the other worlds, output from rank 0 only, cheap waiting, clean
ends."""
import os
import re
import signal
import subprocess

import support
from support import mpi

STRATEGIES = (*support.GRADIENTS, *support.LOCAL_STEPS, *support.GOSSIP)
QUIET = ("--quiet", "--json")
NET = "conv 3x3x8 bias=no\nbn\nrelu\nmaxpool 2\ndense 16\nrelu\ndropout keep=0.7\ndense classes\n"


class Summary(mpi.TestCase):
    def test_the_table_of_workers_has_a_row_per_rank(self):
        ended = self.train(*support.SMALL, "--steps", 30, ranks=3)
        rows = re.findall(r"^([0-9]+|all) +(\d+) +(\d+) +0 .*%", ended.out, re.M)
        self.assertEqual(rows, [("1", "30", "960"), ("2", "30", "960"), ("all", "60", "1920")],
                         ended)


class Bits(mpi.TestCase):
    """Rank 0 sums in worker order, so the bits are those of the local world and of simulation."""

    def assert_same_everywhere(self, *arguments):
        options = (*arguments, "--record", "none", "--eval-every", 0, *QUIET)
        here = self.train(*options).result
        for world in ("local", "sim"):
            there = self.local(*options, "--workers", 4, "--world", world).result
            for key in ("params_hash", "trace_hash"):
                self.assertEqual(here[key], there[key], f"{key} in {world}")
        self.assertEqual(here["world"], "mpi")
        self.assertEqual(here["workers"], 4)

    def test_fmb_gives_the_parameters_of_local_and_sim(self):
        for model, optimizer in (("softmax", "sgd"), ("mlp:24,12", "adam")):
            with self.subTest(model=model, optimizer=optimizer):
                self.assert_same_everywhere(*support.SMALL, "--model", model, "--optimizer",
                                            optimizer, "--steps", 150, "--micro-batch", 16)

    def test_amb_at_its_cap_gives_the_parameters_of_local_and_sim(self):
        self.assert_same_everywhere(*support.SMALL, "--strategy", "amb", "--time-limit", "10s",
                                    "--cap", 48, "--steps", 100)

    def test_local_steps_do_too(self):
        for strategy in ("local-sgd:5", "diloco:5"):
            with self.subTest(strategy=strategy):
                self.assert_same_everywhere(*support.SMALL[:2], "--strategy", strategy, "--steps",
                                            20, "--lr-schedule", "cosine")

    def test_a_net_with_batch_norm_and_dropout_does_too(self):
        net = self.folder / "small.net"
        net.write_text(NET)
        self.assert_same_everywhere("--data", "synthetic:300,3x12x12,4", "--model", net, "--steps",
                                    6, "--batch", 20, "--micro-batch", 8, "--optimizer",
                                    "momentum")

    def test_large_gradients_that_are_sent_in_parts_do_too(self):
        """More than 2 MB, also with statistics of batch norm; rounds of several micro-batches."""
        net = self.folder / "large.net"
        net.write_text("dense 600\nbn\nrelu\ndense 700\nrelu\ndense 300\nbn\nrelu\ndense classes\n")
        for options in ("--steps", 5), ("--strategy", "amb", "--time-limit", "60s", "--cap", 40,
                                        "--steps", 5):
            self.assert_same_everywhere("--data", "synthetic:400,300,7", "--model", net, "--batch",
                                        40, "--micro-batch", 16, *options)

    def test_timed_rounds_with_large_gradients_learn_and_their_ledger_adds_up(self):
        """Their end is decided when the last micro-batch begins."""
        ended = self.train("--data", "synthetic:400,300,7", "--model", "mlp:900,900", "--strategy",
                           "amb", "--time-limit", "40ms", "--sample-time", "1ms", "--micro-batch",
                           8, "--cap", 1000, "--steps", 20, *QUIET, ranks=3)
        self.assert_ledger(ended)
        self.assertEqual(ended.result["steps"], 20)
        self.assertGreaterEqual(ended.result["samples"]["used"], 20 * 2 * 8)

    def test_sparse_models_do_too(self):
        self.assert_same_everywhere("--data", "synthetic-clicks:4000,4096", "--model", "sparse-lr",
                                    "--batch", 64, "--steps", 50)

    def test_linear_regression_does_too(self):
        rows = self.folder / "rows.svm"
        rows.write_text("".join(f"{i % 17 / 4} 1:{i % 5} {2 + i % 7}:1\n" for i in range(400)))
        self.assert_same_everywhere("--data", "synthetic-linear:2000,20,0.1", "--model", "linear",
                                    "--lr", 0.05, "--steps", 50)
        self.assert_same_everywhere("--data", rows, "--test-data", rows, "--model", "sparse-linear",
                                    "--lr", 0.05, "--batch", 16, "--steps", 50)

    def test_late_messages_and_slow_ranks_do_not_change_a_bit(self):
        plain = self.train(*support.SMALL, "--steps", 40, *QUIET).result
        late = self.train(*support.SMALL, "--steps", 40, "--comm-delay", "1ms", "--straggler",
                          "exp:0,0.001", "--sample-time", "5us", *QUIET).result
        self.assertEqual(plain["params_hash"], late["params_hash"])


class Strategies(mpi.TestCase):
    def test_every_strategy_learns_and_its_ledger_adds_up(self):
        for strategy in STRATEGIES:
            with self.subTest(strategy=strategy):
                ended = self.train(*support.SMALL, "--strategy", strategy, "--steps", 200,
                                   "--time-limit", "2ms", *QUIET)
                self.assert_ledger(ended)
                self.assertEqual(ended.result["steps"], 200)
                self.assertGreater(ended.result["test"]["accuracy"], 0.8, ended)
                self.assertEqual(ended.result["lost_rounds"], [])

    def test_no_worker_is_ahead_by_more_than_the_bound(self):
        ended = self.train(*support.SMALL, "--strategy", "ssp", "--staleness", 1, "--steps", 200,
                           "--straggler", "speed:1,1,1,4", "--sample-time", "20us", *QUIET)
        rounds = [row["rounds"] for row in ended.result["worker"]]
        self.assertLessEqual(max(rounds) - min(rounds), 2, ended)

    def test_a_heartbeat_may_overtake_a_report(self):
        ended = self.train(*support.SMALL, "--strategy", "async", "--comm-delay", "1s",
                           "--sample-time", "20ms", "--batch", 16, "--steps", 4, *QUIET, ranks=2)
        self.assert_ledger(ended)
        self.assertEqual(ended.result["steps"], 4)

    def test_a_recorded_run_replays(self):
        run = self.start(*support.SMALL, "--strategy", "async", "--steps", 100)
        self.assertEqual(run.wait().code, support.DONE)
        replayed = subprocess.run([support.ANYTIME, "replay", str(run.folder)],
                                  capture_output=True, text=True, timeout=support.BOUND)
        self.assertEqual(replayed.returncode, support.DONE, replayed.stderr)


class Output(mpi.TestCase):
    """Only rank 0 prints and writes; an error is reported once."""

    def refused(self, *arguments, says, code=support.USAGE, **options):
        ended = self.train(*arguments, code=code, **options)
        self.assertEqual(ended.err.count("anytime: "), 1, ended)
        self.assertIn(says, ended.err, ended)
        self.assertNotIn("MPI_ABORT", ended.err, "all ranks end in order")
        return ended

    def test_without_a_launcher_there_are_no_ranks(self):
        ended = self.local(*support.SMALL, "--world", "mpi", code=support.USAGE)
        self.assertIn("mpirun -n", ended.err)

    def test_the_number_of_workers_is_that_of_the_ranks(self):
        self.refused(*support.SMALL, "--workers", 7, says="--workers 7", ranks=3)

    def test_wrong_options_and_missing_data_are_reported_once(self):
        self.refused(*support.SMALL, "--stepz", 7, says="stepz")
        self.refused("--data", "nowhere", says="nowhere", code=support.MISSING)
        self.refused("--data", "synthetic-clicks:4000,4096", "--model", "sparse-lr", "--strategy",
                     "hogwild", says="share")

    def rank_with(self, options, rank=2):
        """A command in which one rank gets different options."""
        script = self.folder / "rank.sh"
        script.write_text(f"#!/bin/sh\n[ $OMPI_COMM_WORLD_RANK = {rank} ] && other="
                          f"'{options}'\nexec \"$@\" $other\n")
        script.chmod(0o755)
        return script

    def test_rank_0_reports_an_error_of_another_rank(self):
        for data, code, says in (("nowhere", support.MISSING, "rank 2 on"),
                                 ("synthetic:2001,20,5", support.USAGE, "rank 2 on")):
            with self.subTest(data=data):
                self.refused(*support.SMALL, says=says, code=code, ranks=3,
                             more=[str(self.rank_with(f"--data {data}"))])

    def test_no_topology_starts_without_the_data_of_one_rank(self):
        for topology in (("--hubs", 1), ("--topology", "allreduce"), ("--hubs", 2)):
            for rank, says in ((0, "nowhere"), (1, "rank 1 on"), (3, "rank 3 on")):
                with self.subTest(topology=topology, rank=rank):
                    self.refused(*support.SMALL, *topology, says=says, code=support.MISSING,
                                 ranks=4, more=[str(self.rank_with("--data nowhere", rank))])

    def test_ranks_with_other_settings_do_not_start(self):
        for options, says in (("--batch 48 --micro-batch 16", "batch"),
                              ("--micro-batch 8", "micro-batch"),
                              ("--optimizer momentum", "optimizer"), ("--lr 0.03", "learning rate"),
                              ("--lr-schedule cosine", "learning-rate schedule"),
                              ("--lr-schedule warmup:500", "learning-rate schedule"),
                              ("--optimizer momentum:0.8", "optimizer"), ("--clip 1", "optimizer"),
                              ("--label-smoothing 0.1", "model"),
                              ("--seed 77", "seed"), ("--strategy amb", "rules"),
                              ("--gather first:1", "numbers of the rules"),
                              ("--steps 41", "limits of the run"), ("--model mlp:7", "model")):
            with self.subTest(options=options):
                ended = self.refused(*support.SMALL, "--strategy", "fmb", "--steps", 40,
                                     "--micro-batch", 16, says="rank 2 on", ranks=3,
                                     more=[str(self.rank_with(options))])
                self.assertRegex(ended.err, rf"differ in: (.*, |.* and )?{says}")

    def test_ranks_of_equals_with_other_settings_do_not_start(self):
        for topology in (("--topology", "allreduce"), ("--hubs", 2)):
            with self.subTest(topology=topology):
                ended = self.refused(*support.SMALL, *topology, "--steps", 40, says="rank 2 on",
                                     ranks=4, more=[str(self.rank_with("--optimizer adam"))])
                self.assertIn("optimizer", ended.err)

    def test_ranks_of_other_topologies_do_not_start(self):
        hub, allreduce, hubs = ("--hubs", 1), ("--topology", "allreduce"), ("--hubs", 2)
        for all_ranks, other in ((hub, "--topology allreduce"), (allreduce, "--topology hub"),
                                 (hubs, "--hubs 1")):
            with self.subTest(ranks=all_ranks, other=other):
                ended = self.refused(*support.SMALL, *all_ranks, "--steps", 40, says="rank 2 on",
                                     ranks=4, more=[str(self.rank_with(other))])
                self.assertIn("differ in: mix rule", ended.err)

    def test_a_launcher_of_another_library_is_refused(self):
        env = {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "0"}
        ended = self.local(*support.SMALL, code=support.USAGE, env={**mpi.ENV, **env})
        self.assertIn("do not match", ended.err)
        env = {"PMI_SIZE": "2", "PMI_RANK": "0"}
        ended = self.local(*support.SMALL, code=support.USAGE, env={**mpi.ENV, **env})
        self.assertIn("do not match", ended.err)

    def test_one_rank_needs_no_hub(self):
        result = self.train(*support.SMALL, "--steps", 10, *QUIET, ranks=1).result
        self.assertEqual((result["world"], result["workers"]), ("local", 0))

    def test_only_rank_0_prints_and_writes(self):
        ended = self.train(*support.SMALL, "--steps", 20)
        self.assertEqual(ended.out.count("20 steps"), 1, ended)
        self.assertEqual(ended.err.count("ranks of Open MPI"), 1, ended)
        self.assertIn("--enable-recovery", ended.err)
        rows = support.json.loads((ended.folder / "workers.json").read_text())["workers"]
        self.assertEqual([row["rank"] for row in rows], [1, 2, 3, 4])
        self.assertTrue(all(row["host"] for row in rows))

    def test_other_verbs_run_on_one_rank(self):
        done = subprocess.run([*mpi.launcher(3), support.ANYTIME, "models", "list"],
                              env={**os.environ, **mpi.ENV}, capture_output=True, text=True,
                              timeout=support.BOUND)
        self.assertEqual(done.returncode, support.DONE, done.stderr)
        self.assertEqual(len(re.findall(r"^softmax\b", done.stdout, re.MULTILINE)), 1, done.stdout)


class Waiting(mpi.TestCase):
    def test_a_waiting_rank_sleeps(self):
        run = self.start(*support.SMALL, "--straggler", "speed:1,1,1,50", "--sample-time", "1ms",
                         "--steps", 1000, "--seconds", "1h")
        rows = run.wait_working()
        pids = [run.hub(), *(rows[i]["pid"] for i in (1, 2, 3))]
        self.assert_sleep(run, pids)
        os.kill(run.hub(), signal.SIGTERM)
        self.assertEqual(run.wait().code, support.STOPPED)


class Ends(mpi.TestCase):
    def slow(self, *arguments, **options):
        return self.endless(*support.SMALL, "--sample-time", "50us", *arguments, **options)

    def test_a_signal_to_rank_0_stops_the_run(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(signal=number):
                run = self.slow()
                os.kill(run.hub(), number)
                ended = run.wait()
                self.assertEqual(ended.code, support.STOPPED, ended)
                self.assertEqual(ended.result["stopped"], "signal")
                self.assert_ledger(ended)
                self.assert_nothing_left(run)

    def test_a_signal_ends_rounds_whose_gradient_is_being_sent(self):
        for topology in (), ("--mix", "replicated"):
            with self.subTest(topology=topology):
                run = self.endless("--data", "synthetic:400,300,7", "--model", "mlp:900,900",
                                   "--batch", 32, "--micro-batch", 16, *topology, ranks=3)
                os.kill(run.hub(), signal.SIGTERM)
                ended = run.wait()
                self.assertEqual(ended.code, support.STOPPED, ended)
                self.assert_ledger(ended)
                self.assert_nothing_left(run)

    def test_a_signal_to_the_launcher_stops_the_run(self):
        run = self.slow("--strategy", "async")
        run.signal(signal.SIGTERM)
        ended = run.wait()  # the exit code is mpirun's own
        self.assertEqual(ended.result["stopped"], "signal", ended)
        self.assert_ledger(ended)
        self.assert_nothing_left(run)

    def test_a_signal_to_the_launcher_saves_a_checkpoint(self):
        run = self.slow()
        saved = run.folder / "checkpoint"
        before = set(saved.iterdir())
        run.signal(signal.SIGUSR1)
        run.wait_until(lambda: set(saved.iterdir()) - before, "another checkpoint is written")
        os.kill(run.hub(), signal.SIGTERM)
        ended = run.wait()
        self.assertEqual(ended.code, support.STOPPED, ended)
        self.assertNotIn("died", ended.err)

    def test_a_run_resumes_with_other_ranks_or_without_a_launcher(self):
        whole = self.local(*support.SMALL, "--workers", 3, "--steps", 60, *QUIET).result
        first = self.train(*support.SMALL, "--steps", 30, "--checkpoint-every", 10, ranks=4)
        second = support.Run(("--steps", 60, *QUIET), first.folder, resume=True)
        self.addCleanup(second.close)
        self.assertEqual(second.wait().result["params_hash"], whole["params_hash"])
        first = self.local(*support.SMALL, "--workers", 3, "--steps", 30, "--checkpoint-every", 10)
        second = self.train("--steps", 60, *QUIET, ranks=4, resume=first.folder)
        self.assertEqual(second.result["params_hash"], whole["params_hash"])


if __name__ == "__main__":
    mpi.main()
