#!/usr/bin/env python3
"""Loss, gradients and running statistics compared with PyTorch, from the same weights.

One step of plain SGD at a huge learning rate: the change divided by the rate is the gradient at
full precision. The batch is the whole data set, so the order of samples does not matter.

PyTorch computes in double precision. If a ReLU's input is zero, or two values under
a pool are equal, up to rounding, both results are right, and one such case changes the gradients of
all layers below it (PyTorch's own single precision is then off by up to 0.01, otherwise by 2e-6).
So several small batches are drawn: every tensor must agree in one of them, and must not be far off
in any.
"""
import json
import struct
import sys
import unittest

import support

sys.path.insert(0, str(support.ROOT / "bench"))
try:
    import numpy
    from torch_nets import NETS, new_net
    from torch_task import torch
except ImportError:
    torch = None

RATE = 1024.0  # a power of two: division by it is exact
CLASSES = 10
DRAWS = 8
RIGHT, FAR_OFF = 5e-5, 0.2  # differences relative to the largest value


def write_weights(path, tensors):
    """A safetensors file from arrays by name."""
    header, place = {}, 0
    for name, values in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(values.shape),
                        "data_offsets": [place, place + values.nbytes]}
        place += values.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for values in tensors.values():
            file.write(values.tobytes())


def read_weights(path):
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, row in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            first, end = row["data_offsets"]
            values = numpy.frombuffer(data, "<f4", (end - first) // 4, 8 + size + first)
            tensors[name] = values.reshape(row["shape"])
    return tensors


def weights_of(net):
    """The tensors in our files; they lack PyTorch's count of batches."""
    return {name: values.detach().numpy().copy() for name, values in net.state_dict().items()
            if not name.endswith("num_batches_tracked")}


def stir(net):
    """Gives norms unusual initial values, so that an error in them shows."""
    for module in net.modules():
        if isinstance(module, (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d)):
            module.weight.data.uniform_(0.5, 1.5)
            module.bias.data.uniform_(-0.2, 0.2)
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2.0)


def write_idx(path, values):
    head = struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape)
    path.write_bytes(head + values.astype(numpy.uint8).tobytes())


def mistake(found, wanted):
    """The largest difference, relative to the largest value."""
    largest = numpy.abs(wanted).max()
    return float(numpy.abs(found - wanted).max() / largest) if largest else float("nan")


@unittest.skipIf(torch is None, f"{sys.executable} has no PyTorch (package python3-torch)")
class TorchGradients(support.TestCase):
    def write_set(self, shape, count, draw):
        """Writes random images and labels as IDX files; returns them as tensors."""
        random = numpy.random.default_rng(draw)
        images = random.integers(0, 256, (count, *shape))
        labels = CLASSES - 1 - numpy.arange(count) % CLASSES  # the largest sets their number
        write_idx(self.folder / "images", images.reshape(count, -1))
        write_idx(self.folder / "labels", labels)
        return torch.tensor(images / 255), torch.tensor(labels)

    def write_net(self, name):
        """The net's text without dropout, which would be random in another way in PyTorch."""
        text = (support.ROOT / "models" / f"{name}.net").read_text()
        lines = [line for line in text.splitlines() if "dropout" not in line]
        path = self.folder / f"{name}-no-dropout.net"
        path.write_text("\n".join(lines) + "\n")
        return path

    def step_of_torch(self, net, images, labels):
        """The expected loss, gradients and updated running statistics."""
        net.double().train()
        loss = torch.nn.functional.cross_entropy(net(images), labels)
        loss.backward()
        wanted = weights_of(net)
        wanted.update({name: values.grad.numpy() for name, values in net.named_parameters()})
        return loss.item(), wanted

    def step_of_ours(self, name, before, count, options):
        """The same, computed by anytime."""
        ended = self.train(
            "--model", self.write_net(name), "--init", self.folder / "start.safetensors",
            "--data", f"{self.folder}/images,{self.folder}/labels", "--test-split", 0,
            "--workers", 0, "--steps", 1,
            "--batch", count, "--micro-batch", count, "--optimizer", "sgd", "--lr", RATE,
            "--eval-size", 1, "--quiet", *options)
        found = read_weights(ended.folder / "model.safetensors")
        self.assertEqual(found.keys(), before.keys())
        for tensor, start in before.items():
            if "running" not in tensor:
                found[tensor] = (start - found[tensor]) / RATE
        return ended.result["train"]["loss"], found

    def differences(self, name, count, draw, options):
        """Relative differences by tensor, for one draw of weights and samples."""
        torch.manual_seed(draw)
        torch.set_num_threads(1)
        net = new_net(name, CLASSES, exact=True, dropout=False)
        stir(net)
        before = weights_of(net)
        write_weights(self.folder / "start.safetensors", before)
        images, labels = self.write_set(NETS[name][1], count, draw)
        loss, found = self.step_of_ours(name, before, count, options)
        loss_wanted, wanted = self.step_of_torch(net, images, labels)
        self.assertLess(abs(loss / loss_wanted - 1), 1e-5)
        return {tensor: mistake(found[tensor], wanted[tensor]) for tensor in before}

    def check(self, name, count, *options):
        wrong = {}
        for draw in range(1, DRAWS + 1):
            off = self.differences(name, count, draw, options)
            far_off = {tensor: value for tensor, value in off.items() if not value < FAR_OFF}
            self.assertEqual(far_off, {}, name)
            wrong = {tensor: value for tensor, value in off.items()
                     if not value < RIGHT and (draw == 1 or tensor in wrong)}
            if not wrong:
                return
        self.assertEqual(wrong, {}, f"{name}: never right in {DRAWS} draws")

    def test_mnist_cnn(self):
        self.check("mnist-cnn", 8)

    def test_mnist_cnn_with_the_reference_engine(self):
        self.check("mnist-cnn", 2, "--engine", "ref")

    def test_cifar10_cnn(self):
        self.check("cifar10-cnn", 16)

    def test_wrn_28_2(self):
        self.check("wrn-28-2", 2)

    def test_resnet18(self):
        self.check("resnet18", 2)

    def test_alexnet(self):
        if support.is_sanitized():
            self.skipTest("alexnet takes minutes with sanitizers")
        self.check("alexnet", 2)


if __name__ == "__main__":
    support.main()
