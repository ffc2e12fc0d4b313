#!/usr/bin/env python3
"""PyTorch scripts as workers compute what PyTorch computes: DDP, one process, other updates."""

import support
from support import torch_runs
from support.torch_runs import torch

if torch:
    import torch.distributed as dist
    import torch.multiprocessing as multiprocessing

    import anytime
    from support import torch_task as task

STEPS, WORKERS, SIZE = 50, 4, 8
BOUND = 1e-6


def ddp_process(rank, folder, kinds, sizes):
    """DDP over gloo on the samples of the run; the first process saves all results."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank,
                            world_size=len(sizes))
    ends = {}
    for kind in kinds:
        model = task.new_model()
        opt = task.new_optimizer(kind, model)
        parallel = torch.nn.parallel.DistributedDataParallel(model)
        for step in range(1, STEPS + 1):
            opt.zero_grad()
            task.loss_of(parallel, *task.samples(rank, step, sizes[rank])).backward()
            opt.step()
        ends[kind] = task.flat(model).clone()
    if rank == 0:
        torch.save(ends, f"{folder}/ddp.pt")
    dist.barrier()
    dist.destroy_process_group()


def union(kind, sizes, steps=STEPS, clip=None, model="mlp"):
    """One process that sees the samples of all workers as one batch."""
    net = task.new_model(model)
    opt = task.new_optimizer(kind, net)
    for step in range(1, steps + 1):
        parts = [task.samples(rank, step, size) for rank, size in enumerate(sizes)]
        opt.zero_grad()
        task.loss_of(net, torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts])
                     ).backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(net.parameters(), clip)
        opt.step()
    return task.flat(net)


class Case(torch_runs.TestCase):
    def ddp(self, kinds, sizes):
        multiprocessing.start_processes(ddp_process, (str(self.folder), kinds, sizes),
                                        nprocs=len(sizes), start_method="fork")
        return torch.load(self.folder / "ddp.pt")

    def run_workers(self, *words, workers=WORKERS, steps=STEPS, options=()):
        """Final parameters of a run, which must be the same in all workers and in the model."""
        ended = self.torch("-n", workers, "--steps", steps, *options,
                           program=(*words, f"out={self.folder}"))
        params = [self.saved(rank) for rank in range(workers)]
        for other in params[1:]:
            self.assertTrue(torch.equal(params[0], other), ended)
        return params[0], ended

    def assert_close(self, one, two, bound=BOUND):
        self.assertLessEqual((one - two).abs().max().item(), bound)


class LikeDDP(Case):
    def test_four_workers_equal_four_processes_of_ddp(self):
        kinds = ("sgd", "momentum", "adam", "adamw")
        ddp = self.ddp(kinds, [SIZE] * WORKERS)
        start = task.flat(task.new_model())
        for kind in kinds:
            for update in ("hub", "worker"):
                with self.subTest(kind=kind, update=update):
                    ours, _ = self.run_workers(f"optimizer={kind}", f"update={update}",
                                               f"sizes={SIZE}")
                    self.assertGreater((ours - start).abs().max().item(), 0.1)
                    self.assert_close(ours, ddp[kind])

    def test_unequal_batches_equal_one_process_on_the_union_and_those_of_ddp_do_not(self):
        sizes = [3, 5, 13, 11]
        text = f"sizes={','.join(map(str, sizes))}"
        ddp = self.ddp(("sgd",), sizes)["sgd"]
        one = union("sgd", sizes)
        for update in ("hub", "worker"):
            ours, _ = self.run_workers(text, f"update={update}")
            self.assert_close(ours, one, 4e-6)  # sums are rounded in another order
        self.assertGreater((ddp - one).abs().max().item(), 1e-3)


class Updates(Case):
    def test_updates_at_the_hub_equal_those_at_the_workers(self):
        for kind in ("nesterov", "rmsprop", "adagrad"):
            with self.subTest(kind=kind):
                hub, _ = self.run_workers(f"optimizer={kind}", "update=hub", workers=2)
                worker, _ = self.run_workers(f"optimizer={kind}", "update=worker", workers=2)
                self.assert_close(hub, worker)

    def test_optimizers_that_the_hub_lacks_run_in_the_workers(self):
        for kind in ("nadam", "amsgrad"):
            with self.subTest(kind=kind):
                ours, _ = self.run_workers(f"optimizer={kind}", workers=2)
                self.assert_close(ours, union(kind, [8, 8]), 4e-6)

    def test_the_norm_of_the_mean_gradient_is_clipped(self):
        ours, _ = self.run_workers("clip=0.05", workers=2)
        self.assert_close(ours, union("sgd", [8, 8], clip=0.05))

    def test_schedulers_work_as_ever(self):
        net, rates = task.new_model(), []
        opt = task.new_optimizer("momentum", net)
        schedule = torch.optim.lr_scheduler.StepLR(opt, 5, 0.5)
        for step in range(1, 21):
            x, y = zip(*(task.samples(rank, step, 8) for rank in range(2)))
            opt.zero_grad()
            task.loss_of(net, torch.cat(x), torch.cat(y)).backward()
            opt.step()
            rates.append(opt.param_groups[0]["lr"])
            schedule.step()
        for update in ("hub", "worker"):
            with self.subTest(update=update):
                ours, ended = self.run_workers("optimizer=momentum", "schedule=5",
                                               f"update={update}", workers=2, steps=20)
                self.assertEqual(self.saved(0, "facts")["rates"], rates)
                self.assert_close(ours, task.flat(net))
                if update == "hub":
                    table = [float(row["learning_rate"])
                             for row in ended.table("master_stats.csv")]
                    self.assertEqual(table, [float(f"{rate:.9g}") for rate in rates])


class Scripts(Case):
    def test_gradients_may_be_cleared_in_every_way(self):
        """Two micro-batches per round: nothing of a round may be cleared."""
        ends = [self.run_workers(f"clear={how}", workers=2, steps=10,
                                 options=("--batch", 16))[0]
                for how in ("opt", "none", "model", "model-none", "never")]
        net = task.new_model()
        opt = task.new_optimizer("sgd", net)
        for step in range(10):
            parts = [task.samples(rank, 2 * step + i, 8) for i in (1, 2) for rank in (0, 1)]
            opt.zero_grad()
            task.loss_of(net, *(torch.cat(side) for side in zip(*parts))).backward()
            opt.step()
        for end in ends:
            self.assert_close(end, task.flat(net))

    def test_models_of_every_kind(self):
        for kind in ("tied", "lstm", "frozen"):
            with self.subTest(kind=kind):
                ours, ended = self.run_workers(f"model={kind}", workers=2, steps=20)
                self.assert_close(ours, union("sgd", [8, 8], 20, model=kind))
                loaded = anytime.load(ended.folder, task.new_model(kind))
                self.assertTrue(torch.equal(task.flat(loaded), ours))

    def test_statistics_of_batch_norm_are_combined_by_samples(self):
        """A mean is linear, so with one step the running mean is that of the union."""
        sizes = [4, 12]
        self.run_workers("model=norm", "sizes=4,12", workers=2, steps=1)
        states = [self.saved(rank, "facts")["state"] for rank in range(2)]
        net = task.new_model("norm")
        x = torch.cat([task.samples(rank, 1, size)[0] for rank, size in enumerate(sizes)])
        net(x)
        for state in states:
            self.assert_close(state["1.running_mean"], net[1].running_mean)
        self.assertTrue(torch.equal(states[0]["1.running_var"], states[1]["1.running_var"]))


class Late(Case):
    def test_a_worker_that_comes_late_ends_with_the_parameters_of_the_others(self):
        for update in ("hub", "worker"):
            with self.subTest(update=update):
                words = ("optimizer=momentum", f"update={update}", f"out={self.folder}")
                run = self.launch_script("-n", 1, "--workers-max", 2, "--steps", 100000,
                                         "--sample-time", "1ms", "--quiet", program=words)
                run.wait_steps(3)
                run.signal(support.signal.SIGUSR2)
                run.wait_until(lambda: run.workers().get(2, {}).get("state") == "working",
                               "the second worker works")
                run.wait_steps(run.steps() + 5)
                run.signal(support.signal.SIGINT)
                ended = run.wait()
                self.assertEqual(ended.code, support.STOPPED, ended)
                self.assert_ledger(ended)
                self.assertTrue(torch.equal(self.saved(0), self.saved(1)), ended)


if __name__ == "__main__":
    support.main()
