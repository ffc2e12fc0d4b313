"""Convolutional nets: speed compared with PyTorch, share of the peak, slices, memory.

Both sides make whole training steps: a new random batch from memory, forward, backward, one SGD
update. The figure of a run is the median of its steps. Where only the shape of samples matters they
are random numbers; PyTorch gets as many of the same shape.
"""
import pathlib
import tempfile
import typing

from case import Case, in_turn
from verdict import Claim

FOLDER = pathlib.Path(__file__).resolve().parent
LEARNING_RATE = 1e-4  # small, so that nothing diverges: only speed matters

MODELS = FOLDER.parent / "models"


class Net(typing.NamedTuple):
    """A net to measure: its file and its input."""
    path: pathlib.Path
    features: int              # values per sample
    samples: int = 4096        # in the data set
    outputs: int | None = None  # if the net has more outputs than the data has classes
    longer: float = 1          # factor on the length of a run, for slow steps


NETS = {
    "cnn": Net(FOLDER / "nets" / "cnn.net", 3 * 32 * 32),
    "mnist-cnn": Net(MODELS / "mnist-cnn.net", 28 * 28),
    "cifar10-cnn": Net(MODELS / "cifar10-cnn.net", 3 * 32 * 32),
    "resnet18": Net(MODELS / "resnet18.net", 3 * 32 * 32, longer=3),
    "wrn-28-2": Net(MODELS / "wrn-28-2.net", 3 * 32 * 32),
    "alexnet": Net(MODELS / "alexnet.net", 3 * 227 * 227, samples=256, outputs=1000, longer=3),
}


def data_of(net, samples=None):
    """A data set of that shape. Ten classes are enough, however many outputs the net has."""
    return f"synthetic:{samples or NETS[net].samples},{NETS[net].features},10"


def with_model(net, use):
    """Calls use(path) with the net's file, or with a copy that has `outputs` outputs."""
    path, outputs = NETS[net].path, NETS[net].outputs
    if outputs is None:
        return use(path)
    text = path.read_text(encoding="utf-8").replace("dense classes", f"dense {outputs}")
    with tempfile.TemporaryDirectory(prefix="anytime-bench-") as folder:
        copy = pathlib.Path(folder) / f"{net}-{outputs}.net"
        copy.write_text(text, encoding="utf-8")
        return use(copy)


# ---- Speed against PyTorch -----------------------------------------------------------------------

def step_seconds(runner, repeat, net, batch, threads=1, label="anytime"):
    return with_model(net, lambda model: runner.step_of_anytime(
        label, NETS[net].longer * runner.seconds, repeat + 1, "--data", data_of(net), "--model",
        model, "--strategy", "fmb", "--batch", batch, "--micro-batch", batch, "--optimizer", "sgd",
        "--lr", LEARNING_RATE, "--threads", threads, "--eval-size", 1))


def anytime_side(net, batch, threads):
    def side(runner, repeat):
        rate = batch / step_seconds(runner, repeat, net, batch, threads)
        return {"samples_per_second": rate, "compiled": rate}
    return "anytime", side


def torch_side(net, batch, threads):
    """The fastest version and layout counts, chosen separately in each repeat; what torch.compile
    made faster, or slower, is a figure of its own."""
    def side(runner, repeat):
        seconds = runner.step_of_torch("PyTorch", threads, "--net", net, "--batch", batch,
                                       "--lr", LEARNING_RATE, "--seed", repeat + 1)
        rates = {layout: batch / each for layout, each in seconds.items()}
        compiled = {name for name in rates if name.endswith("compiled")}
        best = {"samples_per_second": max(rates[name] for name in rates.keys() - compiled)}
        if compiled:
            best["compiled"] = max(rates[name] for name in compiled)
        return {**best, **rates}
    return "PyTorch", side


def against_torch(net, batch, at_least, threads=1, goal=None):
    name = f"{net}-{batch}" + (f"-t{threads}" if threads > 1 else "")
    count = "one thread" if threads == 1 else f"{threads} threads"
    return Case(name, f"{net}, batch {batch}, {count}, and PyTorch's faster layout",
                ("anytime", "PyTorch"),
                in_turn(anytime_side(net, batch, threads), torch_side(net, batch, threads)),
                (Claim("speed", "samples_per_second", "samples/s", at_least=at_least, goal=goal),
                 Claim("against torch.compile", "compiled", "samples/s", optional=True)))


def ddp_side(net, batch, processes):
    def side(runner, repeat):
        steps = runner.torch("DDP", "torch_ddp.py", "--model", net, "--batch", batch,
                             "--processes", processes, "--seed", repeat + 1, falls_to=0.9)
        return {"samples_per_second": steps * batch * processes}
    return "DDP", side


def workers_side(net, batch, workers):
    def side(runner, repeat):
        result = runner.anytime_learns(
            "anytime", "--model", net, "--strategy", "fmb", "--workers", workers, "--batch", batch,
            "--micro-batch", batch, "--lr", 0.1, "--eval-every", 0, "--eval-size", 2000,
            "--seconds", 2 * runner.seconds, "--seed", repeat + 1, accuracy_min=0.3)
        return {"samples_per_second": result["samples_per_second"]}
    return "anytime", side


# ---- Share of the processor's peak ---------------------------------------------------------------

def reached(size, window):
    """Number of (position, window offset) pairs along one axis that do not fall on padding."""
    middle = window // 2
    return sum(min(size - 1, i + middle) - max(0, i - middle) + 1 for i in range(size))


def flops_of_cnn(padding):
    """Of one sample: three products of the size of forward (forward, weights, input), of which the
    first layer needs only two; two operations per multiply-add. With `padding`, as is usual,
    products with the zeros around an image count; an engine may skip them."""
    def places(size):
        return (size * 5) ** 2 if padding else reached(size, 5) ** 2
    first = places(32) * 3 * 64
    rest = places(16) * 64 * 64 + 4096 * 384 + 384 * 192 + 192 * 10
    return 4 * first + 6 * rest


def peak_of_net(runner, repeat):
    rate = 64 / step_seconds(runner, repeat, "cnn", 64)
    return {"flops": rate * flops_of_cnn(padding=True) / 1e9,
            "flops_needed": rate * flops_of_cnn(padding=False) / 1e9}


def peak_of_core(runner, _repeat):
    peak = runner.fma_peak("peak") / 1e9
    return {"flops": peak, "flops_needed": peak}


# ---- Cost of cutting a batch ---------------------------------------------------------------------

def slicing(net, batch, micro_batch):
    """One process measures the cut and the whole batch in turn."""
    def measure(runner, repeat, _repeats):
        document = runner.slices("slices", "--model", NETS[net].path, "--data", data_of(net),
                                 "--batches", batch, "--slices", f"1,{batch // micro_batch}",
                                 "--repeats", 2, "--seed", repeat + 1)
        whole, cut = sorted(document["points"], key=lambda point: point["slices"])
        return {"cut": {"step_ms": 1e3 * cut["step_seconds"]},
                "whole": {"step_ms": 1e3 * whole["step_seconds"]}}
    return measure


def slices_case(net, batch, micro_batch, at_most):
    return Case(f"slices-{net}", f"{net}: a batch of {batch} in pieces of {micro_batch}, and whole",
                ("cut", "whole"), lambda _runner: slicing(net, batch, micro_batch),
                (Claim("time of a step", "step_ms", "ms", at_most=at_most, best="low"),))


# ---- Memory --------------------------------------------------------------------------------------

MEMORY_LIMIT = 2.5e9


def alexnet_memory(runner, repeat, _repeats):
    def run(model):
        return runner.memory(
            "anytime", "--model", model, "--data", data_of("alexnet", samples=128), "--workers", 2,
            "--batch", 128, "--micro-batch", 16, "--lr", LEARNING_RATE, "--steps", 3,
            "--eval-every", 0, "--eval-size", 16, "--seed", repeat + 1)
    return {"PSS": {"gigabytes": with_model("alexnet", run) / 1e9},
            "limit": {"gigabytes": MEMORY_LIMIT / 1e9}}


NET_CASES = (
    against_torch("cnn", 16, at_least=1.1, goal=1.9),
    against_torch("cnn", 32, at_least=1.1, goal=1.9),
    against_torch("cnn", 64, at_least=1.2, goal=1.9),
    against_torch("cnn", 256, at_least=1.25, goal=1.9),
    against_torch("mnist-cnn", 64, at_least=1.4, goal=1.7),
    against_torch("cifar10-cnn", 64, at_least=1.2, goal=2.0),
    against_torch("resnet18", 32, at_least=1.1, goal=2.0),
    against_torch("wrn-28-2", 32, at_least=1.1, goal=1.8),
    against_torch("alexnet", 32, at_least=1.0, goal=1.5),
    against_torch("cnn", 64, at_least=1.4, threads=2),
    against_torch("cifar10-cnn", 64, at_least=1.2, threads=2),
    Case("cnn-peak", "cnn, batch 64, one thread, and the processor's peak",
         ("anytime", "peak"),
         in_turn(("anytime", peak_of_net), ("peak", peak_of_core)),
         (Claim("share of the peak", "flops", "GF/s", at_least=0.78),
          Claim("without padding", "flops_needed", "GF/s", at_least=0.78))),
    Case("ddp-mnist-cnn", "mnist-cnn, batch 64, 4 workers and a hub, and PyTorch DDP over gloo",
         ("anytime", "DDP"), in_turn(workers_side("mnist-cnn", 64, 4),
                                     ddp_side("mnist-cnn", 64, 4)),
         (Claim("speed", "samples_per_second", "samples/s", at_least=1.5, goal=1.9),), repeats=3,
         repeats_quick=2),
    slices_case("cifar10-cnn", 512, 32, at_most=1.02),
    slices_case("mnist-cnn", 512, 64, at_most=1.05),
    Case("memory-alexnet", "alexnet, 2 workers, batch 128, micro-batch 16: memory of all processes",
         ("PSS", "limit"), lambda _runner: alexnet_memory,
         (Claim("most at one time", "gigabytes", "GB", at_most=1.0, best="low"),), repeats=2,
         repeats_quick=1),
)
