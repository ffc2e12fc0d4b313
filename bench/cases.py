"""The cases: which two sides are compared, and what their ratio must be.

A new case is one row in CASES, or in the table of another cases_*.py. `prepare(runner)` does the
one-time setup and returns measure(runner, repeat, repeats) -> {side: {metric: value}}, which
measures both sides once.
"""
import statistics
import tempfile
import time

from case import Case, in_turn, per_second
from cases_mpi import MPI_CASES, steps_of_ddp
from cases_nets import NET_CASES
from cases_published import PUBLISHED_CASES
from cases_record import RECORD_CASES
from cases_seats import SEAT_CASES
from cases_sparse import SPARSE_CASES
from cases_topologies import TOPOLOGY_CASES
from runner import Broken
from verdict import Claim

MLP = "mlp:300,100"


# ---- Speed against PyTorch -----------------------------------------------------------------------

def steps_of_anytime(model, batch, workers):
    """Steps per second of anytime; `batch` is per worker."""
    def side(runner, repeat):
        result = runner.anytime_learns(
            "anytime", "--model", model, "--strategy", "fmb", "--workers", workers,
            "--batch", batch, "--micro-batch", batch, "--lr", 0.1, "--eval-every", 0,
            "--seconds", runner.seconds, "--seed", repeat + 1)
        return {"steps_per_second": per_second(result, result["steps"])}
    return "anytime", side


def steps_of_torch(model, batch):
    def side(runner, repeat):
        return {"steps_per_second": runner.torch(
            "PyTorch", "torch_plain.py", "--model", model, "--batch", batch, "--seed", repeat + 1)}
    return "PyTorch", side


def against_torch(name, model, batch, at_least):
    """A case without a hub, compared with PyTorch's plain loop."""
    return Case(name, f"{model}, batch {batch}, no hub, compared with PyTorch's plain loop",
                ("anytime", "PyTorch"),
                in_turn(steps_of_anytime(model, batch, 0),
                        steps_of_torch(model.partition(":")[0], batch)),
                (Claim("speed", "steps_per_second", "steps/s", at_least=at_least),))


# ---- Cost of the hub -----------------------------------------------------------------------------

def step_time(name, workers):
    def side(runner, repeat):
        result = runner.anytime_learns(
            name, "--model", MLP, "--strategy", "fmb", "--workers", workers, "--batch", 256,
            "--micro-batch", 64, "--lr", 0.1, "--eval-every", 0, "--seconds", runner.seconds,
            "--seed", repeat + 1)
        return {"step_us": 1e6 / per_second(result, result["steps"])}
    return name, side


# ---- Cost of the deadline ------------------------------------------------------------------------
# One worker, so that worker and hub each have a core. T is the time of the fixed batch in the last
# fmb run, so both strategies compute the same samples per round and the hub's share is the same.

DEADLINE_BATCH, DEADLINE_MICRO_BATCH = 256, 32


def deadline_run(runner, strategy, *arguments):
    return runner.anytime(
        strategy, "--model", MLP, "--strategy", strategy, "--workers", 1,
        "--micro-batch", DEADLINE_MICRO_BATCH, "--lr", 0.05, "--eval-every", 0, *arguments)


def fixed_run(runner, *arguments):
    return deadline_run(runner, "fmb", "--batch", DEADLINE_BATCH, *arguments)


def timed_run(runner, seconds, *arguments):
    """The cap is high enough that only the deadline ends a round."""
    return deadline_run(runner, "amb", "--batch", 4 * DEADLINE_BATCH,
                        "--time-limit", f"{seconds:.9f}s", *arguments)


def round_seconds(result):
    worker = result["worker"][0]
    return worker["compute_seconds"] / worker["rounds"]


def sample_seconds(result):
    """Compute time per sample."""
    worker = result["worker"][0]
    return worker["compute_seconds"] / worker["samples"]


def prepare_cpu(runner):
    """CPU time per sample. The cost of starting, loading and the final evaluation is the same for
    both strategies; it is measured with runs of one step, and their median is subtracted."""
    time_limit = round_seconds(fixed_run(runner, "--seconds", runner.seconds))
    starts = [fixed_run(runner, "--steps", 1) for _ in range(5)]
    start_cpu = statistics.median(result["cpu_seconds"] for result in starts)

    def metrics(result):
        cpu = result["cpu_seconds"] - start_cpu
        drawn = result["samples"]["drawn"] - DEADLINE_BATCH  # minus those of a one-step run
        if cpu <= 0 or drawn <= 0:
            raise Broken("a run took no longer than one of a single step")
        return {"cpu_us_per_sample": 1e6 * cpu / drawn,
                "batch_mean": result["samples"]["drawn"] / result["steps"]}

    def amb(runner, repeat):
        return metrics(timed_run(runner, time_limit, "--seconds", runner.seconds,
                                 "--seed", repeat + 1))

    def fmb(runner, repeat):
        nonlocal time_limit
        result = fixed_run(runner, "--seconds", runner.seconds, "--seed", repeat + 1)
        time_limit = round_seconds(result)
        return metrics(result)

    return in_turn(("amb", amb), ("fmb", fmb))(runner)


def prepare_cut(runner):
    """|end - T| in micro-batches. The rule `nearest` is off by 0 when T is a multiple of a
    micro-batch and by 0.5 half-way between two multiples, so a single T would be arbitrary: the
    repeats spread T evenly over one micro-batch, and the mean counts."""
    micro = DEADLINE_MICRO_BATCH * sample_seconds(fixed_run(runner, "--seconds", runner.seconds))

    def measure(runner, repeat, repeats):
        time_limit = (8 + (repeat + 0.5) / repeats) * micro
        result = timed_run(runner, time_limit, "--seconds", runner.seconds, "--seed", repeat + 1)
        return {"|end - T|": {"us": 1e6 * result["overshoot_seconds"]["mean"]},
                "micro-batch": {"us": 1e6 * DEADLINE_MICRO_BATCH * sample_seconds(result)}}
    return measure


# ---- Gain of the deadline ------------------------------------------------------------------------

def among_stragglers(strategy):
    """Ten workers padded to behave like machines, mean sleep a fifth of the compute time.

    The runs of a repeat share their seed, so the same workers are slow in the same rounds."""
    def side(runner, repeat):
        accuracy = 0.78 if runner.quick else 0.80
        result = runner.anytime(
            strategy, "--model", "softmax", "--strategy", strategy, "--workers", 10,
            "--batch", 64, "--micro-batch", 4, "--sample-time", "300us", "--time-limit", "auto",
            "--straggler", "niagara", "--straggler-scale", "20%", "--lr", 0.05,
            "--target", f"accuracy={accuracy}", "--eval-every", 5, "--seconds", 90,
            "--seed", repeat + 1)
        reached = result["targets"][0].get("seconds")
        if not reached:
            raise Broken(f"{strategy} did not reach an accuracy of {accuracy}")
        return {"samples_per_second": per_second(result, result["samples"]["used"]),
                "target_seconds": reached,
                "batch_mean": result["samples"]["used"] / result["steps"] / result["workers"]}
    return strategy, side


# ---- Predictions of the simulator ----------------------------------------------------------------

MACHINES = ("--data", "fashion-mnist", "--workers", 10, "--batch", 64, "--micro-batch", 4,
            "--sample-time", "300us", "--straggler", "niagara", "--straggler-scale", "20%",
            "--steps", 150, "--eval-every", 0, "--quiet", "--json")


def whatif(runner, repeat, _repeats):
    """amb predicted from a recorded fmb run, and a real amb run with the same seed."""
    seed = ("--seed", repeat + 1)
    with tempfile.TemporaryDirectory(prefix="anytime-bench-") as folder:
        def run(label, *words):
            arguments = [str(word) for word in words]
            runner.commands[label] = "anytime " + " ".join(arguments)
            document, _ = runner.run_json(
                label, [runner.program, *arguments, "--run", f"{folder}/{label}"])
            return {"samples_per_second": document["samples_per_second"]}
        run("recorded", "train", "--strategy", "fmb", *MACHINES, *seed)
        foreseen = run("foreseen", "simulate", "--from", f"{folder}/recorded", "--strategy", "amb",
                       "--quiet", "--json")
        return {"foreseen": foreseen, "real": run("real", "train", "--strategy", "amb", *MACHINES,
                                                  *seed)}


# ---- Start-up ------------------------------------------------------------------------------------

START_UP_LIMITS = {"order_ms": 30.0, "run_ms": 50.0}


def start_up(runner, repeat, _repeats):
    """A run of one step on a cached data set: until the first order, as the program measures it
    itself, and until it has ended."""
    def once():
        begin = time.perf_counter()
        result = runner.anytime("anytime", "--model", "softmax", "--workers", 2, "--steps", 1,
                                "--eval-size", 1, "--seed", repeat + 1)
        return {"order_ms": 1e3 * result["startup_seconds"],
                "run_ms": 1e3 * (time.perf_counter() - begin)}
    runs = [once() for _ in range(5)]
    return {"anytime": {name: min(run[name] for run in runs) for name in START_UP_LIMITS},
            "limit": START_UP_LIMITS}


CASES = (
    Case("ddp", "softmax, batch 60, 4 workers and a hub, compared with PyTorch DDP over gloo",
         ("anytime", "DDP"), in_turn(steps_of_anytime("softmax", 60, 4),
                                     steps_of_ddp("softmax", 60, 4)),
         (Claim("speed", "steps_per_second", "steps/s", at_least=30, goal=42),)),
    against_torch("softmax-10", "softmax", 10, at_least=20),
    against_torch("softmax-60", "softmax", 60, at_least=6),
    against_torch("softmax-256", "softmax", 256, at_least=2.5),
    against_torch("mlp-64", MLP, 64, at_least=1.35),
    Case("hub", f"{MLP}, batch 256: one worker and a hub, compared with no hub",
         ("hub", "no hub"), in_turn(step_time("hub", 1), step_time("no hub", 0)),
         (Claim("time of a step", "step_us", "us", at_most=1.10, best="low"),)),
    Case("cpu", f"{MLP}, no stragglers: CPU time per sample of amb and fmb",
         ("amb", "fmb"), prepare_cpu,
         (Claim("CPU a sample", "cpu_us_per_sample", "us", at_most=1.01, upper_at_most=1.02,
                best="low", judge="median"),),
         repeats=15, repeats_quick=7),
    Case("cut", f"{MLP}, one worker: distance of a round's end from its time limit, amb",
         ("|end - T|", "micro-batch"), prepare_cut,
         (Claim("distance", "us", "us", at_most=0.3, best="low", judge="mean"),)),
    Case("stragglers", "softmax, 10 padded workers, niagara at 20 %: amb and fmb at equal batch",
         ("amb", "fmb"), in_turn(among_stragglers("amb"), among_stragglers("fmb")),
         (Claim("samples", "samples_per_second", "samples/s", at_least=1.4, judge="median"),
          Claim("faster to target", "target_seconds", "s", at_least=1.4, best="low",
                judge="median", invert=True),
          Claim("same batch", "batch_mean", "samples", at_least=0.97, at_most=1.03,
                judge="median"))),
    Case("whatif", "amb predicted by `simulate --from` a recorded fmb run, and a real amb run",
         ("foreseen", "real"), lambda _runner: whatif,
         (Claim("samples", "samples_per_second", "samples/s", at_least=0.93, at_most=1.07,
                judge="median"),)),
    Case("start-up", "softmax, 2 workers, one step on a cached data set",
         ("anytime", "limit"), lambda _runner: start_up,
         (Claim("until computing", "order_ms", "ms", at_most=1.0, best="low"),
          Claim("whole run", "run_ms", "ms", at_most=1.0, best="low"))),
    *RECORD_CASES,
    *MPI_CASES,
    *NET_CASES,
    *SPARSE_CASES,
    *TOPOLOGY_CASES,
    *SEAT_CASES,
    *PUBLISHED_CASES,
)
