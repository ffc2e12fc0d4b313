#!/usr/bin/env python3
"""What PyTorch 2 added, and options of torch.optim: compiled models, hooks, GradScaler, schedulers.

Runs with PyTorch 1.13, too, without the tests of what that lacks.
"""
import re
import textwrap

import support
from support import torch_runs
from support.torch_runs import torch

if torch:
    import anytime.torch
    from support import torch_task as task

VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2]) if torch else (0, 0)


def since(*version):
    """A test of something that PyTorch has since this version."""
    return lambda test: test if VERSION >= version else None


# Trains with `model`, `inner` and `run` (what computes) as prepared by a test; saves parameters.
TRAIN = """
    opt = anytime.Optimizer({wrapped}, inner, **{options})
    {after}
    step = 0
    while not opt.done:
        step += 1
        x, y = task.samples(opt.rank, step, 8)
        opt.zero_grad()
        opt.backward(task.loss_of(run, x, y), 8)
        opt.step()
        {each}
    torch.save(task.flat(model).clone(), "{folder}/params-" + str(opt.rank) + ".pt")
"""


class Case(torch_runs.TestCase):
    def trained(self, before="", *, wrapped="model", after="pass", each="pass", options="{}",
                optimizer="adam"):
        """Parameters after 6 steps of two workers, and what they printed."""
        head = (f"model = task.new_model()\ninner = task.new_optimizer('{optimizer}', model)\n"
                f"run = model\n{before}\n")
        body = textwrap.dedent(TRAIN).format(wrapped=wrapped, after=after, each=each,
                                             options=options, folder=self.folder)
        ended = self.torch("-n", 2, "--steps", 6, "--lease", "100s", "--quiet",
                           script=self.script(head + body))
        self.assertEqual(ended.result["steps"], 6, ended)
        self.assertTrue(torch.equal(self.saved(0), self.saved(1)), ended)
        return self.saved(0), ended

    def assert_close(self, one, other, what):
        self.assertLessEqual((one - other).abs().max().item(), 1e-6, what)


class Optimizers(Case):
    def test_implementations_of_an_optimizer_end_with_the_same_parameters(self):
        """foreach, fused and capturable say how torch computes, not what."""
        expected, _ = self.trained()
        kinds = [("foreach", "hub"), ("foreach", "worker"), ("capturable", "hub")]
        if VERSION >= (2, 4):
            kinds += [("fused", "hub"), ("fused", "worker")]
        for kind, update in kinds:
            with self.subTest(kind=kind, update=update):
                got, _ = self.trained(optimizer=kind, options=f"dict(update='{update}')")
                self.assert_close(expected, got, kind)

    def test_maximize_climbs(self):
        lower, _ = self.trained()
        higher, _ = self.trained(optimizer="maximize")
        self.assertGreater((lower - higher).abs().max().item(), 1e-3)
        start = task.flat(task.new_model())
        self.assertLess(((lower - start) * (higher - start)).sum().item(), 0, "the other way")

    @since(2, 5)
    def test_a_joiner_gets_state_that_is_not_shaped_like_its_parameter(self):
        run = self.launch_script("-n", 1, "--workers-max", 2, "--steps", 100000, "--sample-time",
                                 "1ms", "--quiet",
                                 program=("optimizer=adafactor", f"out={self.folder}"))
        run.wait_steps(3)
        run.signal(support.signal.SIGUSR2)
        run.wait_until(lambda: run.workers().get(2, {}).get("state") == "working",
                       "the second worker works")
        run.wait_steps(run.steps() + 5)
        run.signal(support.signal.SIGINT)
        ended = run.wait()
        self.assertEqual((ended.code, ended.result["respawns"]), (support.STOPPED, 0), ended)
        self.assertTrue(torch.equal(self.saved(0), self.saved(1)), ended)

    @since(2, 0)
    def test_a_rate_that_is_a_tensor_may_be_changed_in_place(self):
        halve = "[g.update(lr=g['lr'] * 0.5) for g in opt.param_groups]"
        expected, _ = self.trained(each=halve)
        got, _ = self.trained(before="inner.param_groups[0]['lr'] = torch.tensor(0.01)",
                              each="opt.param_groups[0]['lr'].mul_(0.5)")
        self.assert_close(expected, got, "the rate was halved after each step")

    def test_the_state_is_that_of_torch(self):
        _, ended = self.trained(each="print('keys', sorted(opt.state_dict()), "
                                     "sorted(opt.state_dict()['param_groups'][0]) == "
                                     "sorted(inner.state_dict()['param_groups'][0]))")
        self.assertEqual(ended.out.count("keys ['param_groups', 'state'] True"), 12, ended)


class Schedulers(Case):
    SCHEDULER = "torch.optim.lr_scheduler.OneCycleLR({}, 0.1, total_steps=9)"

    def test_they_may_be_made_of_either_optimizer(self):
        """Neither warns that the step was not made, although the hub made it."""
        strict = "import warnings\nwarnings.simplefilter('error')"
        for update in ("hub", "worker"):
            with self.subTest(update=update):
                options = f"dict(update='{update}')"
                each = "opt.done or (opt.updated and schedule.step())"
                ours, _ = self.trained(strict, options=options, optimizer="momentum", each=each,
                                       after=f"schedule = {self.SCHEDULER.format('opt')}")
                torchs, _ = self.trained(
                    f"{strict}\nschedule = {self.SCHEDULER.format('inner')}", options=options,
                    optimizer="momentum", each=each)
                self.assert_close(ours, torchs, update)

    def test_a_plateau_lowers_the_rate(self):
        made = "torch.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.5, patience=0)"
        _, ended = self.trained(after=f"schedule = {made}",
                                each="schedule.step(1.0); print('rate', inner.param_groups[0]"
                                     "['lr'])")
        self.assertEqual(ended.out.count("rate 0.005\n"), 2, ended)


class Hooks(Case):
    @since(2, 0)
    def test_hooks_run_where_they_are_registered(self):
        count = """
calls = dict(before=0, after=0, update=0)
def count(name):
    def hook(*_):
        calls[name] += 1
    return hook
inner.register_step_post_hook(count("update"))
"""
        register = ("opt.register_step_pre_hook(count('before')); "
                    "opt.register_step_post_hook(count('after'))")
        for update, updates in (("hub", 0), ("worker", 6)):
            with self.subTest(update=update):
                _, ended = self.trained(count, after=register, each="opt.done and print(calls)",
                                        options=f"dict(update='{update}')")
                said = f"{{'before': 6, 'after': 6, 'update': {updates}}}"
                self.assertEqual(ended.out.count(said), 2, ended)


class Compiled(Case):
    COMPILED = "run = torch.compile(model, backend='aot_eager')"

    @classmethod
    def setUpClass(cls):
        if torch and VERSION >= (2, 0):  # the compiler takes long to load: once, before the fork
            with torch.no_grad():  # autograd cannot be forked
                torch.compile(torch.nn.Linear(1, 1), backend="aot_eager")(torch.ones(1, 1))
        super().setUpClass()

    @since(2, 0)
    def test_a_compiled_model_trains_like_the_plain_one(self):
        expected, _ = self.trained()
        for name, words in {
                "compiled after it was wrapped": {"after": self.COMPILED},
                "compiled and used before": {
                    "before": f"{self.COMPILED}\nrun(task.samples(0, 1, 8)[0])",
                    "wrapped": "run"}}.items():
            with self.subTest(name):
                got, ended = self.trained(**words)
                self.assert_close(expected, got, ended)
                names = anytime.torch.weights(ended.folder)
                self.assertIn("0.weight", names, "without what torch.compile puts in front")


class Precision(Case):
    def test_autocast_computes_the_loss_in_float32(self):
        expected, _ = self.trained(optimizer="sgd")
        got, _ = self.trained("""
def autocast(model, x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return model(x).float()
run = lambda x: autocast(model, x)
""", optimizer="sgd")
        difference = (expected - got).abs().max().item()
        self.assertGreater(difference, 0, "bfloat16 was used")
        self.assertLess(difference, 0.01, "6 steps with rate 0.1")

    def test_defaults_of_torch_do_not_reach_the_hub(self):
        expected, _ = self.trained(options="dict(update='worker')")
        got, _ = self.trained(options="dict(update='worker')",
                              before="torch.set_default_dtype(torch.float64)",
                              after="torch.set_default_dtype(torch.float32)")
        self.assert_close(expected, got, "float64")
        if VERSION >= (2, 0):
            got, _ = self.trained(options="dict(update='worker')",
                                  before="torch.set_default_device('meta')",
                                  after="torch.set_default_device('cpu')")
            self.assert_close(expected, got, "another device")


REFUSALS = """
    import torch.distributed as dist

    def tell(name, attempt):
        try:
            attempt()
            print(f"{name}: accepted")
        except anytime.c.Error as problem:
            print(f"{name}: {problem}")

    def wrap(model, *arguments, **options):
        return anytime.Optimizer(model, torch.optim.Adam(model.parameters(), **options))

    model = task.new_model()
    half = task.new_model()
    half[2].to("meta")
    tell("differentiable", lambda: wrap(model, differentiable=True))
    tell("devices", lambda: wrap(half))
    tell("meta", lambda: wrap(task.new_model().to("meta")))
    dist.init_process_group("gloo", init_method="file://FOLDER/meeting", rank=0, world_size=1)
    tell("ddp", lambda: wrap(torch.nn.parallel.DistributedDataParallel(model)))
    dist.destroy_process_group()
    opt = wrap(model)
    tell("bfloat16", lambda: opt.backward(model(task.samples(0, 1, 8)[0]).bfloat16().mean(), 8))
    opt._samples = 0
    if hasattr(torch.amp, "GradScaler"):
        scaler = torch.amp.GradScaler("cpu")
        opt.backward(scaler.scale(task.loss_of(model, *task.samples(0, 1, 8))), 8)
        scaler.unscale_(opt)
        tell("scaler", lambda: scaler.step(opt))
"""

SENTENCES = {"differentiable": "leave it out", "devices": "several devices (cpu, meta)",
             "meta": "on the meta device", "ddp": "without DistributedDataParallel",
             "bfloat16": "cannot hold the number of samples",
             "scaler": "GradScaler is not supported"}


class Refusals(torch_runs.TestCase):
    def test_what_cannot_work_is_refused(self):
        absent = set()
        if VERSION < (2, 0):
            absent.add("differentiable")
        if VERSION < (2, 3):
            absent.add("scaler")
        text = REFUSALS.replace("FOLDER", str(self.folder))
        if "differentiable" in absent:
            text = "\n".join(line for line in text.split("\n") if "differentiable" not in line)
        ended = self.torch("-n", 1, "--quiet", script=self.script(text))
        for name, sentence in SENTENCES.items():
            if name not in absent:
                self.assertRegex(ended.out, f"{name}: .*{re.escape(sentence)}", ended)


if __name__ == "__main__":
    support.main()
