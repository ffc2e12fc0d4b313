"""One process of bench/torch_peers.py: trains the MNIST CNN under one of the peers until killed.

    python3 bench/torch_peer.py SIDE --notes FOLDER --processes N [--scale S]

Every process writes a file RANK-PID with a line "TIME SAMPLES" whenever samples of its own have
gone into the parameters. With --scale it sleeps after each batch as a worker of the straggler
model `niagara` would: how slow it is depends only on its rank and on the number of its step, for
each sample of that step (under Hivemind, whose steps may be longer, of its batch).
"""
import argparse
import os
import pathlib
import random
import sys
import time
from datetime import timedelta

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "examples" / "torch")]

BATCH, MICRO = 64, 16  # samples of a worker per step; those of a micro-batch under amb
NIAGARA = ((0, 0, .4), (0, .4, .3), (2, .3, .2), (5, .3, .1))  # mean, deviation, weight
LOOPBACK = "127.0.0.1"


def niagara(rank, number):
    """Seconds that a worker sleeps during its step of this number."""
    chance = random.Random(rank * 1_000_003 + number)
    part = chance.choices(NIAGARA, [weight for _, _, weight in NIAGARA])[0]
    return max(0.0, chance.gauss(*part[:2]))


class Work:
    """The task, its sleeps and the log: the same for all sides."""

    def __init__(self, options, rank):
        import torch
        from mnist_cnn import Net
        torch.set_num_threads(1)
        torch.manual_seed(1)
        self.torch, self.rank, self.scale, self.number = torch, rank, options.scale, 0
        self.model = Net()
        self.opt = torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9)
        self.x, self.y = torch.randn(512, 1, 28, 28), torch.randint(0, 10, (512,))
        path = options.notes / f"{rank}-{os.getpid()}"
        self.file = open(path, "w", buffering=1, encoding="utf-8")

    def loss(self, model, size=BATCH):
        """The loss of one more batch, after the sleep that belongs to it."""
        index = self.torch.randint(0, len(self.x), (size,))
        loss = self.torch.nn.functional.cross_entropy(model(self.x[index]), self.y[index])
        if self.scale:
            time.sleep(niagara(self.rank, self.number) * self.scale * size / BATCH)
        return loss

    def used(self, samples):
        """Samples of this process have gone into the parameters."""
        print(f"{time.time():.4f} {samples}", file=self.file)
        self.number += 1


def run_anytime(options, size):
    import anytime.torch
    work = Work(options, int(os.environ["ANYTIME_RANK"]))
    opt = anytime.torch.Optimizer(work.model, work.opt, batch=BATCH)
    pending = 0
    while not opt.done:
        opt.zero_grad()
        opt.backward(work.loss(work.model, size), size)
        opt.step()
        pending += size
        if opt.updated:
            work.used(pending)
            pending = 0


def run_ddp(options):
    """Under torchrun."""
    import torch.distributed as dist
    dist.init_process_group("gloo")
    work = Work(options, dist.get_rank())
    model = work.torch.nn.parallel.DistributedDataParallel(work.model, gradient_as_bucket_view=True)
    while True:
        work.opt.zero_grad()
        work.loss(model).backward()
        work.opt.step()
        work.used(BATCH)


def run_torchft(options):
    import torch.distributed as dist
    import torchft
    work = Work(options, options.rank)

    def load(state):
        work.model.load_state_dict(state["model"])
        work.opt.load_state_dict(state["opt"])

    def save():
        return {"model": work.model.state_dict(), "opt": work.opt.state_dict()}

    store = dist.TCPStore(LOOPBACK, 0, is_master=True, wait_for_workers=False)
    bound = timedelta(seconds=10)
    manager = torchft.Manager(
        pg=torchft.ProcessGroupGloo(timeout=bound), load_state_dict=load, state_dict=save,
        min_replica_size=1, timeout=bound, quorum_timeout=timedelta(seconds=60), rank=0,
        world_size=1, store_addr=LOOPBACK, store_port=store.port, hostname=LOOPBACK,
        lighthouse_addr=options.meeting, replica_id=f"replica{options.rank}-")
    model = torchft.DistributedDataParallel(manager, work.model)
    opt = torchft.Optimizer(manager, work.opt)
    while True:
        before = manager.current_step()
        opt.zero_grad()
        work.loss(model).backward()
        opt.step()
        if manager.current_step() > before and manager.is_participating():
            work.used(BATCH)


def run_hivemind(options, batches=1):
    """`batches`: a step has as many batches per process."""
    import hivemind
    work = Work(options, options.rank)
    dht = hivemind.DHT(initial_peers=[options.meeting], start=True,
                       host_maddrs=[f"/ip4/{LOOPBACK}/tcp/0"])
    opt = hivemind.Optimizer(
        dht=dht, run_id="bench", params=work.model.parameters(), batch_size_per_step=BATCH,
        optimizer=lambda params: work.torch.optim.SGD(params, lr=1e-3, momentum=0.9),
        target_batch_size=BATCH * batches * options.processes, matchmaking_time=1.0,
        averaging_timeout=10.0, averager_opts={"request_timeout": 0.5},
        tracker_opts={"min_refresh_period": 0.1, "default_refresh_period": 0.2})
    pending, epoch = 0, opt.local_epoch
    while True:
        work.loss(work.model).backward()
        opt.step()
        opt.zero_grad()
        pending += BATCH
        work.number += 1
        if opt.local_epoch > epoch:
            work.used(pending)
            pending, epoch = 0, opt.local_epoch


def serve_torchft(options):
    """The lighthouse; prints its address."""
    from torchft.coordination import LighthouseServer
    server = LighthouseServer(bind=f"{LOOPBACK}:0", min_replicas=1, join_timeout_ms=1000,
                              quorum_tick_ms=20, heartbeat_timeout_ms=1000)
    port = server.address().rsplit(":", 1)[1]
    print(f"MEETING http://{LOOPBACK}:{port}", flush=True)
    time.sleep(options.lifetime)


def serve_hivemind(options):
    """The first node of the hash table; prints its address."""
    import hivemind
    dht = hivemind.DHT(start=True, host_maddrs=[f"/ip4/{LOOPBACK}/tcp/0"])
    print("MEETING", dht.get_visible_maddrs()[0], flush=True)
    time.sleep(options.lifetime)


ROLES = {"anytime-fmb": lambda options: run_anytime(options, BATCH),
         "anytime-amb": lambda options: run_anytime(options, MICRO),
         "ddp": run_ddp, "torchft": run_torchft, "hivemind": run_hivemind,
         "hivemind-16": lambda options: run_hivemind(options, 16),
         "serve-torchft": serve_torchft, "serve-hivemind": serve_hivemind}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("role", choices=ROLES)
    parser.add_argument("--notes", type=pathlib.Path, help="folder for what was used when")
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--scale", type=float, default=0, help="of the sleeps; 0: none")
    parser.add_argument("--meeting", help="address of the lighthouse or of the hash table")
    parser.add_argument("--lifetime", type=float, default=3600, help="of a server, in seconds")
    options = parser.parse_args()
    ROLES[options.role](options)


if __name__ == "__main__":
    main()
