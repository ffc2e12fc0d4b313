#!/usr/bin/env python3
"""Checkpoints of PyTorch scripts: what is saved, and runs that go on as if never interrupted."""
import support
from support import tensors, torch_runs
from support.torch_runs import torch

if torch:
    import anytime
    from support import torch_task as task

SCRIPT = """
    words = dict(word.split("=") for word in sys.argv[1:])
    model = task.new_model(words.get("model", "mlp"))
    opt = task.new_optimizer(words["optimizer"], model)
    opt = anytime.Optimizer(model, opt, update=words["update"])
    while not opt.done:
        x, y = task.samples(opt.rank, opt.version + 1, 8)
        opt.backward(task.loss_of(model, x, y), len(x))
        opt.step()
    if words.get("model") == "norm":
        print("batches", int(model[1].num_batches_tracked))
"""


class Checkpoints(torch_runs.TestCase):
    def train(self, *arguments, folder=None, **words):
        program = [f"{name}={value}" for name, value in words.items()]
        return self.torch(*arguments, script=self.script(SCRIPT), program=program, folder=folder)

    def test_a_resumed_run_ends_as_an_uninterrupted_one(self):
        for update, kind in (("hub", "momentum"), ("worker", "momentum"), ("worker", "nadam")):
            with self.subTest(update=update, kind=kind):
                words = {"update": update, "optimizer": kind}
                whole = self.train("-n", 2, "--steps", 20, **words)
                part = self.train("-n", 2, "--steps", 9, **words)
                rest = self.train("--steps", 20, folder=part.folder, **words)
                self.assertEqual(rest.result["resumed_at"], 9)
                self.assertEqual(rest.result["params_hash"], whole.result["params_hash"])

    def test_the_state_of_torchs_optimizer_is_saved_under_its_names(self):
        ended = self.train("-n", 2, "--steps", 5, update="worker", optimizer="adamw")
        saved = tensors.read(ended.folder / "checkpoint" / "step-000000000005.safetensors")
        for name in ("exp_avg", "exp_avg_sq", "step@"):  # of another shape
            self.assertIn(f"anytime.state.optimizer.0.weight.{name}", saved)
        net = task.new_model()
        for run in (ended.folder, ended.folder / "model.safetensors",
                    ended.folder / "checkpoint" / "step-000000000005.safetensors"):
            names = set(anytime.weights(run))
            self.assertEqual(names, {name for name, _ in net.named_parameters()})
        one = task.flat(anytime.load(ended.folder, net)).clone()
        (ended.folder / "model.safetensors").unlink()  # as in a run that is not over
        self.assertTrue(torch.equal(one, task.flat(anytime.load(ended.folder, net))))

    def test_a_run_whose_hub_was_killed_goes_on_from_its_last_checkpoint(self):
        words = {"update": "worker", "optimizer": "momentum"}
        run = self.launch_script("-n", 2, "--steps", 100000, "--checkpoint-every", 5, "--quiet",
                                 script=self.script(SCRIPT),
                                 program=[f"{name}={value}" for name, value in words.items()])
        saved = run.folder / "checkpoint"
        run.wait_until(lambda: any(int(path.name[5:17]) > 0 for path in saved.glob("step-*")),
                       "a checkpoint after step 0 is written")
        run.signal(support.signal.SIGKILL)
        run.wait()
        step = max(int(path.name[5:17]) for path in saved.glob("step-*"))
        self.assertEqual(step % 5, 0)
        rest = self.train("--steps", step + 5, folder=run.folder, **words)
        self.assertEqual(rest.result["resumed_at"], step)
        whole = self.train("-n", 2, "--steps", step + 5, **words)
        self.assertEqual(rest.result["params_hash"], whole.result["params_hash"])

    def test_counters_of_the_model_go_on_too(self):
        words = {"update": "hub", "optimizer": "sgd", "model": "norm"}
        part = self.train("-n", 1, "--steps", 5, "--sample-time", "30ms", **words)
        rest = self.train("--steps", 10, folder=part.folder, **words)
        counted = int(rest.out.split("batches")[1].split()[0])
        self.assertGreater(counted, 5, rest)  # the hub is given them about once a second


if __name__ == "__main__":
    support.main()
