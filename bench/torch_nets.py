"""The nets of models/ and bench/nets/ as PyTorch modules.

Tensors have the names used in our own files (conv1.weight, bn1.running_mean, dense1.bias), so
weights can be exchanged without a mapping.

`exact` selects how to do TensorFlow's SAME padding where it is asymmetric (stride 2): exactly,
which costs PyTorch a copy, or with one row on every side, which has as many multiply-adds and is
what a PyTorch user would write. Tests use the first, benchmarks the second.
"""
import collections

from torch_task import torch

functional = torch.nn.functional


class SameConv2d(torch.nn.Conv2d):
    """A convolution whose output has ceil(size / stride) rows, padded as TensorFlow does."""

    def forward(self, images):
        sides = []
        for size, window, stride in zip(images.shape[:1:-1], self.kernel_size[::-1],
                                        self.stride[::-1]):
            total = max((-(-size // stride) - 1) * stride + window - size, 0)
            sides += [total // 2, total - total // 2]
        return super().forward(functional.pad(images, sides))


class Net(torch.nn.Module):
    """A list of functions, applied in turn; layers are numbered in order of creation."""

    def __init__(self, exact, dropout):
        super().__init__()
        self.exact, self.dropout = exact, dropout
        self.counts = collections.Counter()
        self.steps = []

    def forward(self, x):
        for step in self.steps:
            x = step(x)
        return x

    def then(self, *steps):
        self.steps += steps
        return self

    def put(self, kind, layer):
        self.counts[kind] += 1
        self.add_module(f"{kind}{self.counts[kind]}", layer)
        return layer

    def conv(self, width_in, width, size, stride=1, bias=False, pad=None):
        """A square convolution; without `pad` it is SAME."""
        if pad is None and stride > 1 and size > 1 and self.exact:
            return self.put("conv", SameConv2d(width_in, width, size, stride, bias=bias))
        pad = size // 2 if pad is None else pad
        return self.put("conv", torch.nn.Conv2d(width_in, width, size, stride, pad, bias=bias))

    def bn(self, width, momentum=0.1, eps=1e-5, flat=False):
        """`momentum` as in PyTorch: the weight of the newest batch."""
        kind = torch.nn.BatchNorm1d if flat else torch.nn.BatchNorm2d
        return self.put("bn", kind(width, eps=eps, momentum=momentum))

    def dense(self, width_in, width):
        return self.put("dense", torch.nn.Linear(width_in, width))

    def drop(self, probability):
        return torch.nn.Dropout(probability) if self.dropout else torch.nn.Identity()

    def basic(self, width_in, width, stride=1):
        """Two 3x3 convolutions and a shortcut (He 2015)."""
        conv1, bn1 = self.conv(width_in, width, 3, stride, pad=1), self.bn(width)
        conv2, bn2 = self.conv(width, width, 3, pad=1), self.bn(width)
        project = None
        if stride > 1 or width_in != width:
            project = torch.nn.Sequential(self.conv(width_in, width, 1, stride), self.bn(width))

        def step(x):
            y = bn2(conv2(relu(bn1(conv1(x)))))
            return relu(y + (project(x) if project else x))
        return step

    def wide(self, width_in, width, stride=1):
        """The same with norm and ReLU first (Zagoruyko 2016)."""
        bn1, conv1 = self.bn(width_in, eps=1e-4), self.conv(width_in, width, 3, stride)
        bn2, conv2 = self.bn(width, eps=1e-4), self.conv(width, width, 3)
        project = None
        if stride > 1 or width_in != width:
            project = self.conv(width_in, width, 1, stride)

        def step(x):
            y = relu(bn1(x))
            skip = project(y) if project else x
            return conv2(relu(bn2(conv1(y)))) + skip
        return step


def relu(x):
    return functional.relu(x, inplace=True)


def flatten(x):
    """The same order of values in either layout."""
    return torch.flatten(x, 1)


def average(x):
    return functional.adaptive_avg_pool2d(x, 1)


def cnn(net, classes):
    pool = torch.nn.MaxPool2d(3, 2, padding=1)
    return net.then(net.conv(3, 64, 5, bias=True), relu, pool,
                    net.conv(64, 64, 5, bias=True), relu, pool, flatten,
                    net.dense(4096, 384), relu, net.dense(384, 192), relu, net.dense(192, classes))


def mnist_cnn(net, classes):
    pool = torch.nn.MaxPool2d(2)
    return net.then(net.conv(1, 32, 5, bias=True), relu, pool,
                    net.conv(32, 64, 5, bias=True), relu, pool, flatten,
                    net.dense(3136, 1024), relu, net.dense(1024, classes))


def cifar10_cnn(net, classes):
    pool = torch.nn.MaxPool2d(2)
    for width_in, width, size in ((3, 64, 3), (64, 128, 3), (128, 256, 5), (256, 512, 5)):
        net.then(net.conv(width_in, width, size), relu, pool, net.bn(width, 0.01, 1e-3))
    net.then(flatten)
    for width_in, width in ((2048, 128), (128, 256), (256, 512)):
        net.then(net.dense(width_in, width), relu, net.drop(0.3),
                 net.bn(width, 0.01, 1e-3, flat=True))
    return net.then(net.dense(512, classes))


def resnet18(net, classes):
    net.then(net.conv(3, 64, 3), net.bn(64), relu)
    width_in = 64
    for width, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2),
                          (512, 1)):
        net.then(net.basic(width_in, width, stride))
        width_in = width
    return net.then(average, flatten, net.dense(512, classes))


def wrn_28_2(net, classes):
    net.then(net.conv(3, 16, 3))
    width_in = 16
    for width, first in ((32, 1), (64, 2), (128, 2)):
        for stride in (first, 1, 1, 1):
            net.then(net.wide(width_in, width, stride))
            width_in = width
    return net.then(net.bn(128, eps=1e-4), relu, average, flatten, net.dense(128, classes))


def alexnet(net, classes):
    pool = torch.nn.MaxPool2d(3, 2)
    return net.then(net.conv(3, 96, 11, stride=4, pad=0), relu, pool,
                    net.conv(96, 256, 5), relu, pool, net.conv(256, 384, 3), relu,
                    net.conv(384, 384, 3), relu, net.conv(384, 256, 3), relu, pool, flatten,
                    net.dense(9216, 4096), relu, net.drop(0.5), net.dense(4096, 4096), relu,
                    net.drop(0.5), net.dense(4096, classes))


# name: (builder, shape of an image, classes of the published net)
NETS = {
    "cnn": (cnn, (3, 32, 32), 10),
    "mnist-cnn": (mnist_cnn, (1, 28, 28), 10),
    "cifar10-cnn": (cifar10_cnn, (3, 32, 32), 10),
    "resnet18": (resnet18, (3, 32, 32), 10),
    "wrn-28-2": (wrn_28_2, (3, 32, 32), 10),
    "alexnet": (alexnet, (3, 227, 227), 1000),
}


def new_net(name, classes=None, exact=False, dropout=True):
    build, _, published = NETS[name]
    return build(Net(exact, dropout), classes or published)
