#!/usr/bin/env python3
"""Parameters that are mapped instead of copied, and gradients that are summed in shared memory.

Every script trains a second model with plain torch on the same samples and compares bits.
"""
import support
from support import torch_runs
from support.torch_runs import torch

COMPARE = """
    def pair(make, batch=8, **options):
        "A model in the run and its equal in plain torch, with their optimizers."
        torch.manual_seed(1)
        ours, plain = make(), make()
        plain.load_state_dict(ours.state_dict())
        opt = anytime.Optimizer(ours, torch.optim.SGD(ours.parameters(), lr=0.25, **options),
                                batch=batch)
        return ours, plain, opt, torch.optim.SGD(plain.parameters(), lr=0.25, **options)

    def fails(model, x, y, at_once=False):
        "A loss whose backward() fails, by default when the last layer has its gradient."
        def fail(_):
            raise RuntimeError("no memory")
        inner = model[:-1](x)
        loss = torch.nn.functional.cross_entropy(model[-1](inner), y)
        (loss if at_once else inner).register_hook(fail)
        return loss

    def same(ours, plain):
        return all(torch.equal(p, q) for p, q in zip(ours.parameters(), plain.parameters()))
"""


class Memory(torch_runs.TestCase):
    def compare(self, text, *arguments):
        ended = self.torch("-n", 1, "--quiet", *arguments, script=self.script(
            COMPARE + text))
        self.assertIn("[0] same True", ended.out, ended)

    def test_what_a_script_writes_to_parameters_is_gone_with_the_next(self):
        self.compare("""
    ours, plain, opt, torchs = pair(lambda: torch.nn.Linear(300, 400), momentum=0.5)
    equal, begin = True, next(ours.parameters()).data_ptr()
    for step in range(6):
        x, y = torch.randn(8, 300), torch.randint(0, 400, (8,))
        opt.backward(task.loss_of(ours, x, y), 8)
        with torch.no_grad():
            if step % 2: ours.weight[3:300:7].zero_()  # pages here and there
            if step == 4: ours.bias.fill_(9)
        opt.step()
        torchs.zero_grad()
        task.loss_of(plain, x, y).backward()
        torchs.step()
        equal = equal and same(ours, plain)
    opt._seat.leave()  # they are the script's now
    equal = equal and same(ours, plain) and begin == next(ours.parameters()).data_ptr()
    with torch.no_grad(): ours.weight.mul_(2)
    print("same", equal and torch.equal(ours.weight, 2 * plain.weight))
    """, "--steps", 1000)

    def test_parameters_that_a_round_does_not_use_have_no_gradient(self):
        self.compare("""
    class Heads(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.heads = torch.nn.ModuleList(torch.nn.Linear(20, 5) for _ in range(3))
    ours, plain, opt, torchs = pair(Heads)
    equal = True
    for step in range(12):
        x, y = task.samples(0, step, 8)
        opt.backward(task.loss_of(ours.heads[step // 2 % 3], x, y), 8)
        opt.step()
        task.loss_of(plain.heads[step // 2 % 3], x, y).backward()
        if step % 2:  # two micro-batches of equal size
            for p in plain.parameters(): p.grad = None if p.grad is None else p.grad / 2
            torchs.step()
            torchs.zero_grad(set_to_none=True)
            equal = equal and opt.updated and same(ours, plain)
    print("same", equal)
    """, "--batch", 16, "--steps", 1000)

    def test_two_backward_calls_are_one_micro_batch(self):
        self.compare("""
    ours, plain, opt, torchs = pair(task.new_model)
    for step in range(5):
        for part in range(2):
            x, y = task.samples(part, step, 8)
            opt.backward(task.loss_of(ours, x, y), 8)
            (task.loss_of(plain, x, y) / 2).backward()
        opt.step()
        torchs.step()
        torchs.zero_grad()
    print("same", same(ours, plain))
    """, "--batch", 16, "--steps", 1000)

    def test_a_batch_that_failed_leaves_nothing_behind(self):
        self.compare("""
    ours, plain, opt, torchs = pair(task.new_model)
    for step in range(6):
        x, y = task.samples(0, step, 8)
        if step % 3 == 0:
            try: opt.backward(fails(ours, x, y), 8)
            except RuntimeError as error: assert str(error) == "no memory", error
            continue
        opt.backward(task.loss_of(ours, x, y), 8)
        opt.step()
        torchs.zero_grad()
        task.loss_of(plain, x, y).backward()
        torchs.step()
    print("same", same(ours, plain) and opt._seat.facts.samples_used == 4 * 8)
    """, "--steps", 1000)

    def test_a_batch_that_failed_half_way_does_not_reach_the_hub(self):
        self.compare("""
    ours, plain, opt, torchs = pair(task.new_model)
    said = []
    for step in range(4):
        x, y = task.samples(0, step, 8)
        try:
            opt.backward(fails(ours, x, y) if step == 1 else task.loss_of(ours, x, y), 8)
            opt.step()
        except RuntimeError as error:
            said.append(str(error)[:26])
    print("same", said == ["no memory"] + 2 * ["an opt.backward() failed a"]
          and opt._seat.facts.samples_used == 0)
    """, "--batch", 16, "--steps", 1000)

    def test_a_batch_that_failed_before_it_added_anything_is_no_harm(self):
        self.compare("""
    ours, plain, opt, torchs = pair(task.new_model)
    for step in range(4):
        x, y = task.samples(0, step, 8)
        try: opt.backward(fails(ours, x, y, at_once=True), 8)
        except RuntimeError as error: assert str(error) == "no memory", error
        opt.backward(task.loss_of(ours, x, y), 8)
        opt.step()
        (task.loss_of(plain, x, y) / 2).backward()
        if step % 2:
            torchs.step()
            torchs.zero_grad()
    print("same", same(ours, plain))
    """, "--batch", 16, "--steps", 1000)

    def test_statistics_of_a_batch_that_is_skipped_are_forgotten(self):
        for update in ("hub", "worker"):
            with self.subTest(update=update):
                self.compare(f"""
    model = task.new_model("norm")
    opt = anytime.Optimizer(model, torch.optim.SGD(model.parameters(), lr=0.1), update="{update}")
    micro = 0
    while not opt.done:
        x, y = task.samples(0, micro, 8)
        opt.backward(task.loss_of(model, x * float("nan") if micro == 3 else x, y), 8)
        opt.step()
        micro += 1
    print("same", micro == 11 and all(v.isfinite().all() for v in model.state_dict().values()))
    """, "--batch", 8, "--steps", 10, "--nonfinite", "skip")

    def test_sparse_gradients_of_an_embedding(self):
        self.compare("""
    ours, plain, opt, torchs = pair(lambda: torch.nn.Embedding(50, 4, sparse=True))
    for step in range(5):
        index = torch.randint(0, 50, (8,))
        opt.backward(ours(index).pow(2).sum(1).mean(), 8)
        opt.step()
        torchs.zero_grad()
        plain(index).pow(2).sum(1).mean().backward()
        torchs.step()
    print("same", torch.allclose(ours.weight, plain.weight, atol=1e-6))
    """, "--steps", 1000)

    def test_hooks_of_step_are_called(self):
        if not hasattr(torch.optim.Optimizer, "register_step_post_hook"):
            self.skipTest("this PyTorch has no hooks of step()")
        self.compare("""
    ours, _, opt, _ = pair(task.new_model)
    called = []
    opt.register_step_post_hook(lambda *_: called.append(opt.version))
    for step in range(3):
        opt.backward(task.loss_of(ours, *task.samples(0, step, 8)), 8)
        opt.step()
    print("same", called == [1, 2, 3])
    """, "--steps", 1000)


if __name__ == "__main__":
    support.main()
