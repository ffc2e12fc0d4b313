#!/usr/bin/env python3
"""Updates by all workers, by several hubs, or by a hub that its workers help give the bits of one
process; a process that dies in the middle of a slice costs only time."""
import os
import random
import signal

import support
from support import processes

QUIET = ("--quiet", "--json")
LONG = ("--steps", 10 ** 9)  # ended by the test

# Large enough for every process to get a slice.
WIDE = ("--data", "synthetic:600,400,10", "--model", "mlp:300,100", "--batch", "16")

TOPOLOGIES = (("--topology", "allreduce"), ("--hubs", 2), ("--hubs", 3))


class Bits(support.TestCase):
    def hashes(self, *arguments):
        result = self.train_json("--steps", 20, "--eval-every", 0, "--record", "none", *arguments)
        return result["params_hash"], result["trace_hash"]

    def assert_all_same(self, *arguments):
        one = self.hashes(*arguments)
        for topology in TOPOLOGIES:
            with self.subTest(topology=topology, arguments=arguments):
                self.assertEqual(one, self.hashes(*arguments, *topology))

    def test_every_optimizer_gives_the_same_bits(self):
        for optimizer in ("sgd", "momentum", "nesterov", "rmsprop", "adam", "adamw", "adagrad",
                          "dual-averaging"):
            self.assert_all_same(*WIDE, "--workers", 4, "--optimizer", optimizer,
                                 "--weight-decay", "1e-3")

    def test_clipped_gradients_give_the_same_bits(self):
        self.assert_all_same(*WIDE, "--workers", 4, "--optimizer", "momentum", "--clip", "0.1")
        self.assert_all_same(*WIDE, "--workers", 3, "--strategy", "noise", "--clip", "0.1")
        self.assertNotEqual(self.hashes(*WIDE, "--workers", 4),
                            self.hashes(*WIDE, "--workers", 4, "--clip", "0.1"))

    def test_timed_rounds_that_end_at_the_cap_give_the_same_bits(self):
        self.assert_all_same(*WIDE, "--workers", 4, "--strategy", "amb", "--time-limit", "60s",
                             "--optimizer", "momentum")

    def test_batches_that_change_give_the_same_bits(self):
        for strategy in ("grow", "shrink", "loss", "noise"):
            self.assert_all_same(*WIDE, "--workers", 3, "--strategy", strategy,
                                 "--optimizer", "adam")

    def test_a_small_model_and_one_worker_give_the_same_bits(self):
        self.assert_all_same(*support.SMALL, "--workers", 3)
        self.assert_all_same(*WIDE, "--workers", 1, "--optimizer", "adam")

    def test_a_hub_that_workers_help_gives_the_bits_of_virtual_time(self):
        """Vectors of more than 1 MB: gradients are summed as they arrive, and waiting workers take
        a part of the update."""
        for arguments in ((), ("--clip", "0.1"), ("--strategy", "noise"),
                          ("--straggler", "speed:1,1,1,3")):
            with self.subTest(arguments=arguments):
                large = (*Deaths.HEAVY, "--workers", 4, "--batch", 4, *arguments)
                self.assertEqual(*(self.hashes(*large, "--world", world)
                                   for world in ("local", "sim")))

    def test_nets_with_batch_norm_give_the_same_bits(self):
        net = self.folder / "norms.net"
        net.write_text("conv 3x3x16 bias=no\nbn\nrelu\nbasic 32 stride=2\nbasic 64 stride=2\n"
                       "avgpool all\ndense classes\n")
        self.assert_all_same("--data", "synthetic:200,3x12x12,4", "--model", net, "--batch", 16,
                             "--workers", 3, "--optimizer", "momentum", "--steps", 4)

    def test_the_result_has_the_mix_rule(self):
        for arguments, expected in (((), ("central", 1)), (("--hubs", 3), ("sliced:3", 3)),
                                    (("--mix", "sliced:3"), ("sliced:3", 3)),
                                    (("--mix", "replicated"), ("replicated", 1)),
                                    (("--topology", "allreduce"), ("replicated", 1)),
                                    (("--topology", "allreduce", "--hubs", 1), ("central", 1))):
            result = self.train_json(*support.SMALL, "--steps", 3, "--workers", 2, *arguments)
            self.assertEqual((result["rules"]["mix"], result["hubs"]), expected)

    def test_several_hubs_support_strategies_that_do_not_wait(self):
        for strategy in ("async", "async-fmb", "backup", "ssp", "async-timed", "batch-sync"):
            with self.subTest(strategy=strategy):
                ended = self.train(*WIDE, *QUIET, "--steps", 60, "--workers", 3, "--hubs", 3,
                                   "--strategy", strategy)
                self.assert_ledger(ended)


class Deaths(support.TestCase):
    """Steps are short and updates long, so most kills hit a process within a slice."""

    HEAVY = ("--data", "synthetic:200,400,10", "--model", "mlp:1000,500", "--batch", "1",
             "--optimizer", "adam", "--eval-every", 0)

    def test_workers_killed_in_an_update_cost_only_unfinished_rounds(self):
        for topology in ("allreduce", "hub"):
            with self.subTest(topology=topology):
                self.kill_workers(*self.HEAVY, *QUIET, *LONG, "--workers", 4, "--topology",
                                  topology)

    def kill_workers(self, *arguments):
        run = self.start(*arguments)
        chance, kills = random.Random(1), 0
        for _ in range(5):
            run.wait_working()
            for worker in chance.sample(range(1, 5), 4):
                row = run.wait_until(lambda: (rows := run.workers())[worker]["state"] == "working"
                                     and rows[worker], f"worker {worker} works")
                os.kill(row["pid"], signal.SIGKILL)
                run.wait_until(lambda: run.workers()[worker]["incarnation"] > row["incarnation"],
                               f"worker {worker} is replaced")
                kills += 1
        run.wait_steps(run.steps() + 20)
        run.signal(signal.SIGTERM)
        ended = run.wait()
        self.assertEqual((ended.code, ended.result["respawns"]), (support.STOPPED, kills), ended)
        self.assert_ledger(ended)
        self.assert_gone(run)

    def test_a_frozen_worker_delays_a_run_only_for_a_while(self):
        run = self.start(*self.HEAVY, *QUIET, *LONG, "--workers", 3, "--topology", "allreduce",
                         "--lease", "1s")
        for _ in range(3):
            row = run.wait_working()[2]
            os.kill(row["pid"], signal.SIGSTOP)
            run.wait_until(lambda: run.workers()[2]["pid"] != row["pid"], "worker 2 is replaced")
        run.wait_steps(run.steps() + 20)
        run.signal(signal.SIGTERM)
        ended = run.wait()
        self.assertEqual(ended.code, support.STOPPED, ended)
        self.assert_ledger(ended)
        self.assert_gone(run)

    def others(self, run, count):
        """The other hubs: the last children before the workers."""
        def find():
            rows = run.workers()
            left = run.children() - {row["pid"] for row in rows.values()}
            return rows and len(left) > count and left
        return sorted(run.wait_until(find, f"{count} other hubs run"))[-count:]

    def test_hubs_killed_one_after_another_do_not_change_a_bit(self):
        for clip in (), ("--clip", "0.1"):
            with self.subTest(clip=clip):
                self.kill_hubs(*self.HEAVY, *QUIET, "--workers", 2, "--steps", 300, *clip)

    def kill_hubs(self, *arguments):
        undisturbed = self.train(*arguments).result["params_hash"]
        run = self.start(*arguments, "--hubs", 3)
        run.wait_working()
        hubs = self.others(run, 2)
        for number, pid in enumerate(hubs, start=1):
            os.kill(pid, signal.SIGKILL)
            run.wait_said(f"hub {number} died: the other hubs take over its slice")
        ended = run.wait()
        self.assertEqual((ended.code, ended.result["params_hash"]), (support.DONE, undisturbed),
                         ended)
        self.assert_ledger(ended)
        self.assert_gone(run)

    def test_a_frozen_hub_does_not_hold_up_the_others(self):
        """They take the slices that it has not begun; one that it has begun ends with it."""
        arguments = (*self.HEAVY, *QUIET, "--workers", 2, "--steps", 300)
        undisturbed = self.train(*arguments).result["params_hash"]
        run = self.start(*arguments, "--hubs", 2)
        run.wait_working()
        os.kill(self.others(run, 1)[0], signal.SIGSTOP)
        ended = run.wait()
        self.assertEqual((ended.code, ended.result["params_hash"]), (support.DONE, undisturbed),
                         ended)
        self.assert_gone(run)

    def test_no_process_outlives_a_killed_hub(self):
        for topology in TOPOLOGIES:
            with self.subTest(topology=topology):
                run = self.start(*self.HEAVY, *QUIET, *LONG, "--workers", 2, *topology)
                run.wait_working()
                run.signal(signal.SIGKILL)
                self.assertEqual(run.wait().code, -signal.SIGKILL)
                support.wait_until(lambda: not processes.marked(run.mark),
                                   "all processes of a killed hub are gone")


class Refusals(support.TestCase):
    def test_impossible_combinations_are_refused_with_a_message(self):
        for arguments, words in (
                (("--topology", "allreduce", "--strategy", "async"), "does not wait for all"),
                (("--topology", "allreduce", "--gather", "first:1"), "does not wait for all"),
                (("--topology", "ring"), "--topology: unknown value 'ring'"),
                (("--mix", "ring"), "unknown mix 'ring'"),
                (("--topology", "hogwild"), "does not work with --strategy fmb"),
                (("--hubs", 2, "--world", "sim"), "a simulation is one process"),
                (("--hubs", 2, "--workers", 0), "--workers 0 is one process"),
                (("--hubs", 0), "HUBS is '0', but it must be 1 to 1024 processes")):
            with self.subTest(arguments=arguments):
                ended = self.train(*support.SMALL, "--workers", 2, "--steps", 3, *arguments,
                                   code=support.USAGE)
                self.assert_complaint(ended, words)


if __name__ == "__main__":
    support.main()
