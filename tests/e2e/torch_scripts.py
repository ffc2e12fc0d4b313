#!/usr/bin/env python3
"""PyTorch scripts as they are: what is refused, samplers, seeds, evaluation, the examples."""
import os

import support
from support import torch_runs
from support.torch_runs import torch

if torch:
    import anytime
    import anytime.torch
    from support import torch_task as task

REFUSALS = """
    import copy
    from torch import nn

    def tell(name, attempt):
        try:
            attempt()
            print(f"{name}: accepted")
        except anytime.c.Error as problem:
            print(f"{name}: {problem}")

    def wrap(model=None, kind="sgd", opt=None, **options):
        model = model or task.new_model()
        opt = opt or task.new_optimizer(kind, model)
        return anytime.Optimizer(model, opt, **options)

    sparse = nn.Module()
    sparse.weight = nn.Parameter(torch.eye(3).to_sparse())
    other = task.new_model()
    tell("lbfgs", lambda: wrap(opt=torch.optim.LBFGS(other.parameters())))
    tell("half", lambda: wrap(task.new_model().half()))
    tell("sparse", lambda: wrap(sparse))
    tell("foreign", lambda: wrap(opt=torch.optim.SGD(other.parameters(), lr=1)))
    tell("amsgrad", lambda: wrap(kind="amsgrad", update="hub"))
    tell("clip", lambda: wrap(clip_norm=1.0, update="hub"))
    tell("where", lambda: wrap(update="nowhere"))
    tell("reduction", lambda: wrap(reduction="median"))

    model = task.new_model("norm")
    opt = wrap(model)
    x, y = task.samples(0, 1, 8)

    def after_backward(action):
        def attempt():
            opt.backward(task.loss_of(model, x, y), 8)
            action()
            opt.step()
        return attempt

    tell("second", wrap)
    tell("twice", lambda: anytime.Optimizer(model, opt))
    tell("group", lambda: opt.add_param_group({"params": list(other.parameters())}))
    tell("state", lambda: opt.load_state_dict(opt.state_dict()))
    tell("nothing", opt.step)
    tell("closure", lambda: opt.step(lambda: 0))
    tell("none", lambda: opt.backward(task.loss_of(model, x, y), 0))
    tell("vector", lambda: opt.backward(model(x).sum(1), 8))
    opt._samples = 0
    scaler = torch.cuda.amp.GradScaler(enabled=False)
    tell("disabled scaler", after_backward(lambda: None))
    states = {id(opt): {"stage": 2, "found_inf_per_device": {}}}  # enabled only with a GPU
    scaler.__dict__.update(_enabled=True, _scale=torch.ones(1), _growth_tracker=torch.ones(1),
                           _per_optimizer_states=states)
    tell("scaler", lambda: scaler.step(opt))
    tell("fine", after_backward(lambda: None))
    tell("clipped", after_backward(
        lambda: nn.utils.clip_grad_norm_(model.parameters(), 1e-3)))
    tell("mixed", lambda: (task.loss_of(model, x, y).backward(), after_backward(int)()))
    for p in model.parameters(): p.grad = None
    opt._samples = 0
    tell("frozen", after_backward(lambda: model[3].bias.requires_grad_(False)))
    model[3].bias.requires_grad_(True)
    tell("moved", lambda: (setattr(model[0].weight, "data", model[0].weight.data.clone()),
                           after_backward(int)()))
"""

SENTENCES = {
    "lbfgs": "cannot be distributed", "half": "is torch.float16", "sparse": "weight is sparse",
    "foreign": "parameters that the model does not have", "amsgrad": "needs update=\"worker\"",
    "clip": "clipping and before_update happen where torch is", "where": "not 'nowhere'",
    "reduction": "not 'median'", "second": "has a seat already", "twice": "is wrapped already",
    "group": "cannot be added", "state": "before anytime.Optimizer is made",
    "nothing": "replace loss.backward()", "closure": "takes no closure",
    "none": "needs the number of samples", "vector": "must be one number, not [8]",
    "disabled scaler": "accepted", "scaler": "GradScaler is not supported", "fine": "accepted",
    "clipped": "use anytime.Optimizer(.., clip_norm=)", "mixed": "is not from opt.backward()",
    "frozen": "requires_grad of 3.bias was changed", "moved": "0.weight was moved",
}


class Refusals(torch_runs.TestCase):
    def test_what_is_refused_says_why(self):
        ended = self.torch("-n", 1, "--steps", 20, "--quiet", script=self.script(REFUSALS))
        lines = [line[4:] for line in ended.out.splitlines() if line.startswith("[0] ")]
        said = dict(line.split(": ", 1) for line in lines)
        for name, sentence in SENTENCES.items():
            self.assertIn(sentence, said.get(name, "not tried"), f"{name}{ended}")

    def test_other_models_and_other_optimizers_are_refused(self):
        for what in ("model", "optimizer"):
            words = {"model": "model=' + ('norm' if rank else 'mlp')",
                     "optimizer": "optimizer=' + ('adam' if rank else 'sgd')"}[what]
            script = self.script(f"""
                import runpy
                rank = int(os.environ["ANYTIME_RANK"])
                sys.argv = [sys.argv[0], '{words}]
                runpy.run_path({str(torch_runs.WORKER)!r}, run_name="__main__")
                """)
            with self.subTest(what=what):
                ended = self.torch("-n", 2, "--steps", 5, "--restarts", 0, code=support.FAILED,
                                   script=script)
                self.assertIn("trains something else", ended.err)


class Samples(torch_runs.TestCase):
    def test_every_worker_draws_its_own_samples(self):
        script = self.script(f"""
            from torch.utils.data import DataLoader, TensorDataset
            x, y = task.samples(0, 1, 96)
            data = TensorDataset(torch.arange(96), x, y)
            model = task.new_model()
            opt = anytime.Optimizer(model, task.new_optimizer("sgd", model), samples=96)
            seen = []
            while not opt.done:
                loader = DataLoader(data, 8, sampler=anytime.Sampler(data), num_workers=1)
                for index, x, y in loader:
                    opt.backward(task.loss_of(model, x, y), len(x))
                    opt.step()
                    seen += index.tolist()
                    if opt.done: break
            torch.save([seen, opt.epoch], "{self.folder}/seen-" + str(opt.rank) + ".pt")
            """)
        ended = self.torch("-n", 2, "--epochs", 4, script=script)
        self.assertEqual(ended.result["samples"]["used"], 4 * 96)
        seen = [self.saved(rank, "seen") for rank in range(2)]
        for indices, epoch in seen:
            self.assertEqual(epoch, 4)
            self.assertEqual(sorted(indices[:96]), list(range(96)), "a pass has every sample once")
            self.assertEqual(sorted(indices[96:192]), list(range(96)))
            self.assertNotEqual(indices[:96], indices[96:192])
        self.assertNotEqual(seen[0][0], seen[1][0])

    def test_a_replacement_goes_on_where_the_dead_one_was(self):
        script = self.script(f"""
            from torch.utils.data import DataLoader, TensorDataset
            data = TensorDataset(torch.arange(400), *task.samples(0, 1, 400))
            model = task.new_model()
            opt = anytime.Optimizer(model, task.new_optimizer("sgd", model))
            seen, path = [], "{self.folder}/seen-0.pt"
            before = torch.load(path) if os.path.exists(path) else None
            for index, x, y in DataLoader(data, 8, sampler=anytime.Sampler(data)):
                opt.backward(task.loss_of(model, x, y), len(x))
                opt.step()
                seen += index.tolist()
                if opt.done: break
                if before is None and len(seen) == 80:
                    torch.save(seen, path)
                    os._exit(9)
            torch.save(before + seen, path)
            """)
        ended = self.torch("-n", 1, "--steps", 49, script=script)
        self.assertEqual(ended.result["respawns"], 1)
        lost, seen = ended.result["samples"]["dropped"], self.saved(0, "seen")
        self.assertEqual(len(seen), len(set(seen)), "nothing twice")
        self.assertGreaterEqual(len(seen), 400 - lost - 8)

    def test_a_script_that_seeds_torch_draws_other_samples_on_every_rank(self):
        script = self.script(f"""
            torch.manual_seed(1)
            model = task.new_model()
            opt = anytime.Optimizer(model, task.new_optimizer("sgd", model))
            torch.save(torch.rand(3), "{self.folder}/seen-" + str(opt.rank) + ".pt")
            """)
        self.torch("-n", 2, "--quiet", script=script)
        one = self.saved(0, "seen")
        self.assertFalse(torch.equal(one, self.saved(1, "seen")))
        self.torch("-n", 2, "--quiet", script=script)
        self.assertTrue(torch.equal(one, self.saved(0, "seen")), "the same in every run")


class Evaluation(torch_runs.TestCase):
    def test_targets_are_reached_and_the_end_is_evaluated(self):
        script = self.script("""
            model = task.new_model()
            opt = anytime.Optimizer(model, task.new_optimizer("adam", model))
            x_test, y_test = task.samples(9, 9, 500)

            def evaluate():
                with opt.aside(), torch.no_grad():
                    out = model(x_test)
                    opt.evaluated(accuracy=(out.argmax(1) == y_test).float().mean().item(),
                                  loss=torch.nn.functional.cross_entropy(out, y_test).item())

            step = 0
            while not opt.done:
                step += 1
                x, y = task.samples(opt.rank, step, 16)
                opt.backward(task.loss_of(model, x, y), len(x))
                opt.step()
                if opt.first and not opt.done and sys.argv[1] == "often": evaluate()
            if opt.first: evaluate()
            """)
        result = self.torch("-n", 2, "--steps", 100000, "--target", "accuracy=0.9", script=script,
                            program=("often",)).result
        self.assertEqual(result["stopped"], "target")
        self.assertGreaterEqual(result["test"]["accuracy"], 0.9)
        ended = self.torch("-n", 2, "--steps", 200, script=script, program=("once",))
        self.assertGreater(ended.result["test"]["accuracy"], 0.9)
        run = anytime.read(ended.folder)
        self.assertEqual(run.result["steps"], len(run.steps["step"]))


class Alone(torch_runs.TestCase):
    """Without a hub a script trains as before, bit for bit."""

    def test_training_is_that_of_torch(self):
        plain, ours = task.new_model(), task.new_model()
        torchs, inner = task.new_optimizer("adam", plain), task.new_optimizer("adam", ours)
        opt = anytime.torch.Optimizer(ours, inner, samples=64)
        schedules = [torch.optim.lr_scheduler.CosineAnnealingLR(o, 20) for o in (torchs, opt)]
        for step in range(20):
            x, y = task.samples(0, step, 8)
            torchs.zero_grad()
            task.loss_of(plain, x, y).backward()
            torchs.step()
            opt.zero_grad()
            opt.backward(task.loss_of(ours, x, y), 8)
            opt.step()
            self.assertTrue(opt.updated and not opt.done)
            for schedule in schedules:
                schedule.step()
        self.assertTrue(torch.equal(task.flat(plain), task.flat(ours)))
        self.assertEqual((opt.rank, opt.workers, opt.version, opt.first, opt.epoch),
                         (0, 1, 20, True, 2))
        self.assertEqual(opt.state_dict()["param_groups"], torchs.state_dict()["param_groups"])


class Examples(torch_runs.TestCase):
    FOLDER = support.ROOT / "examples" / "torch"

    def test_they_train_together(self):
        for name, words in (("logistic", ()), ("mnist_cnn", ("--batch-size", 4)),
                            ("cifar10_resnet18", ("--width", 4, "--batch-size", 4)),
                            ("characters", ("--batch-size", 4)),
                            ("characters", ("--batch-size", 4, "--lstm"))):
            with self.subTest(name=name, words=words):
                ended = self.torch("-n", 2, "--steps", 3, script=self.FOLDER / f"{name}_anytime.py",
                                   program=words)
                self.assertEqual((ended.result["stopped"], ended.result["steps"]), ("steps", 3))

    def test_few_lines_were_changed(self):
        for path in self.FOLDER.glob("*_anytime.py"):
            plain = (self.FOLDER / path.name.replace("_anytime", "")).read_text().splitlines()
            changed = [line for line in path.read_text().splitlines() if line not in plain]
            self.assertLessEqual(len(changed), 7, (path.name, changed))


if __name__ == "__main__":
    os.environ["XDG_CACHE_HOME"] = "/nowhere"  # examples: small synthetic data
    support.main()
