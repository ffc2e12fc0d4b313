"""Cases under mpirun: a hub and workers over MPI, compared with PyTorch's processes."""
from case import Case, in_turn, per_second
from cases_nets import ddp_side as samples_of_ddp
from verdict import Claim

# Open MPI needs options to run more ranks than cores, and to run as root.
LAUNCHER = ("mpirun", "--oversubscribe", "--bind-to", "none", "-n")
ENV = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
       "OMPI_MCA_btl": "self,vader"}


def ranks(runner, repeat, model, batch, workers, **options):
    """One run of a hub and `workers` workers."""
    return runner.anytime_learns(
        "anytime", "--model", model, "--strategy", "fmb", "--batch", batch, "--micro-batch", batch,
        "--lr", 0.1, "--eval-every", 0, "--eval-size", 2000, "--seconds", runner.seconds, "--seed",
        repeat + 1, launcher=(*LAUNCHER, str(workers + 1)), extra=ENV, **options)


def steps_side(model, batch, workers):
    def side(runner, repeat):
        result = ranks(runner, repeat, model, batch, workers)
        return {"steps_per_second": per_second(result, result["steps"])}
    return "anytime", side


def steps_of_ddp(model, batch, processes):
    def side(runner, repeat):
        return {"steps_per_second": runner.torch(
            "DDP", "torch_ddp.py", "--model", model, "--batch", batch, "--processes", processes,
            "--seed", repeat + 1)}
    return "DDP", side


def samples_side(model, batch, workers):
    def side(runner, repeat):
        result = ranks(runner, repeat, model, batch, workers, accuracy_min=0.3)
        return {"samples_per_second": per_second(result, result["samples"]["used"])}
    return "anytime", side


WAITING_LIMIT = 0.05  # of a core
SLOW_STEPS = (2, 12)


def waiting_ranks(topology, workers, ranks_started):
    """The share of a core that a rank uses while it waits for a worker that is 50 times slower.
    All workers are padded, so nobody computes; a short run has the cost of starting."""
    def measure(runner, repeat, _repeats):
        speeds = ",".join(["1"] * (workers - 1) + ["50"])
        runs = [runner.anytime(
            "anytime", "--data", "synthetic:2000,20,5", "--batch", 32, "--straggler",
            f"speed:{speeds}", "--sample-time", "1ms", "--eval-every", 0, "--steps", steps,
            "--seed", repeat + 1, *topology, launcher=(*LAUNCHER, str(ranks_started)), extra=ENV)
            for steps in SLOW_STEPS]
        cpu, seconds = (runs[1][key] - runs[0][key] for key in ("cpu_seconds", "seconds"))
        return {"rank": {"cores": cpu / seconds / ranks_started},
                "limit": {"cores": WAITING_LIMIT}}
    return lambda _runner: measure


def waiting_case(name, topology, workers, ranks_started):
    return Case(name, f"{ranks_started} ranks that wait for a slow one: processor time of each",
                ("rank", "limit"), waiting_ranks(topology, workers, ranks_started),
                (Claim("while waiting", "cores", "cores", at_most=1.0, best="low"),), repeats=2,
                repeats_quick=1)


MPI_CASES = (
    Case("mpi-softmax", "softmax, batch 60, 4 workers under MPI, and PyTorch DDP over gloo",
         ("anytime", "DDP"), in_turn(steps_side("softmax", 60, 4), steps_of_ddp("softmax", 60, 4)),
         (Claim("speed", "steps_per_second", "steps/s", at_least=10),)),
    Case("mpi-mnist-cnn", "mnist-cnn, batch 64, 4 workers under MPI, and PyTorch DDP over gloo",
         ("anytime", "DDP"),
         in_turn(samples_side("mnist-cnn", 64, 4), samples_of_ddp("mnist-cnn", 64, 4)),
         (Claim("speed", "samples_per_second", "samples/s", at_least=1.4, goal=1.7),), repeats=3,
         repeats_quick=2),
    waiting_case("mpi-waiting", (), 4, 5),
    waiting_case("mpi-waiting-allreduce", ("--topology", "allreduce"), 4, 4),
)
