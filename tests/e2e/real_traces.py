#!/usr/bin/env python3
"""--straggler trace:FILE and --faults trace:FILE: what real clusters recorded."""
import json
import random
import statistics

import support


def write_log(path, times):
    """One row per worker and step; times[step][worker]."""
    rows = [f"{step},{worker},{seconds:.6f}\n" for step, row in enumerate(times, 1)
            for worker, seconds in enumerate(row)]
    path.write_text("step,worker,seconds\n" + "".join(rows))
    return path


class Traces(support.TestCase):
    def simulate(self, *words, code=support.DONE):
        self.runs += 1
        return self.anytime("simulate", "--model", "none:1000", "--sample-time", "1ms", "--batch",
                            10, *words, "--run", self.folder / f"run{self.runs}", "--json",
                            "--quiet", code=code)

    def test_step_times_of_a_trace_are_those_of_the_run(self):
        draw = random.Random(1)
        times = [[draw.uniform(0.99, 1.01) * (0.02 if worker == step % 3 else 0.01)
                  for worker in range(3)] for step in range(120)]
        trace = write_log(self.folder / "trace.csv", times)
        result = self.simulate("--straggler", f"trace:{trace}", "--workers", 3, "--steps", 120)
        expected = statistics.mean(map(max, times))
        self.assertAlmostEqual(result.result["step_seconds"]["mean"] / expected, 1, delta=1e-3)
        result = self.simulate("--straggler", f"trace:{trace}", "--workers", 3, "--steps", 120,
                               "--trace-scale", 10)
        self.assertAlmostEqual(result.result["step_seconds"]["mean"] / expected, 10, delta=1e-2)

    def test_padded_processes_follow_a_trace(self):
        times = [[0.002 if worker else 0.2 for worker in range(2)] for _ in range(5)]
        trace = write_log(self.folder / "trace.csv", times)
        result = self.train_json(*support.SMALL, "--straggler", f"trace:{trace}", "--workers", 2,
                                 "--sample-time", "1ms", "--steps", 5)
        self.assertGreaterEqual(result["worker"][0]["compute_seconds"], 1)

    def test_recorded_faults_kill_and_return_workers(self):
        trace = self.folder / "faults.csv"
        trace.write_text("days,node,event,level\n1,2,start,GPU\n2,2,end,GPU\n3,3,start,GPU\n"
                         "3,99,start,GPU\n")
        ended = self.simulate("--faults", f"trace:{trace}", "--trace-scale", 1 / 86400,
                              "--workers", 4, "--steps", 500)
        rounds = [row["rounds"] for row in ended.result["worker"]]
        self.assertEqual(rounds[0], 500)
        self.assertEqual(rounds[3], 500)
        self.assertAlmostEqual(rounds[1], 400, delta=3)
        self.assertAlmostEqual(rounds[2], 300, delta=3)
        self.assert_ledger(ended)

    def test_spot_instances_join_and_die(self):
        trace = self.folder / "spot.json"
        trace.write_text(json.dumps({"metadata": {"gap_seconds": 1},
                                     "data": [0, 1, 2, 6, 6, 3, 4]}))
        for respawn in ("--respawn", "--no-respawn"):
            ended = self.simulate("--faults", f"trace:{trace}", "--workers", 2, "--workers-max",
                                  4, "--steps", 500, respawn)
            rounds = [row["rounds"] for row in ended.result["worker"]]
            self.assertEqual(rounds[:2], [500, 500])
            self.assertAlmostEqual(rounds[2], 400, delta=3)  # joins after 1 s
            self.assertAlmostEqual(rounds[3], 300, delta=3)  # and is away from 3 s to 4 s
            self.assert_ledger(ended)

    def test_bad_traces_get_a_sentence(self):
        trace = self.folder / "trace"
        trace.write_text("step,worker,seconds\n1,0,1\n2,0,1\n3,0,1\n")
        ended = self.simulate("--straggler", f"trace:{trace}", "--workers", 2, "--steps", 1,
                              code=support.FORMAT)
        self.assert_complaint(ended, "has step times of 1 worker, but there are 2")
        ended = self.simulate("--faults", f"trace:{trace}", "--workers", 2, "--steps", 1,
                              code=support.FORMAT)
        self.assert_complaint(ended, "a column is missing")


if __name__ == "__main__":
    support.main()
