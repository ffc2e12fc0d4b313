"""What the tests of PyTorch scripts train, the same in a run, under DDP and in one process.

A batch is a function of rank and step, so that all of them see the same samples.
"""
import torch
from torch import nn

FEATURES, CLASSES = 20, 5


def samples(rank, step, count):
    """A batch: noisy points around one centre per class."""
    made = torch.Generator().manual_seed(1000 * step + rank)
    centres = torch.randn(CLASSES, FEATURES, generator=torch.Generator().manual_seed(1))
    y = torch.randint(0, CLASSES, (count,), generator=made)
    return centres[y] + torch.randn(count, FEATURES, generator=made), y


def new_model(kind="mlp"):
    torch.manual_seed(1)
    if kind == "mlp":
        return nn.Sequential(nn.Linear(FEATURES, 16), nn.ReLU(), nn.Linear(16, CLASSES))
    if kind == "norm":
        return nn.Sequential(nn.Linear(FEATURES, 16), nn.BatchNorm1d(16), nn.ReLU(),
                             nn.Linear(16, CLASSES))
    if kind == "frozen":
        model = new_model("mlp")
        model[0].weight.requires_grad_(False)
        return model
    return {"tied": Tied, "lstm": Recurrent}[kind]()


class Tied(nn.Module):
    """Encodes and decodes with one matrix."""

    def __init__(self):
        super().__init__()
        self.encode = nn.Linear(FEATURES, FEATURES, bias=False)
        self.decode = nn.Linear(FEATURES, FEATURES, bias=False)
        self.decode.weight = self.encode.weight
        self.out = nn.Linear(FEATURES, CLASSES)

    def forward(self, x):
        return self.out(torch.tanh(self.decode(torch.tanh(self.encode(x)))))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(FEATURES // 4, 8, batch_first=True)
        self.out = nn.Linear(8, CLASSES)

    def forward(self, x):
        return self.out(self.lstm(x.view(len(x), 4, FEATURES // 4))[0][:, -1])


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-3),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1),
    "nadam": lambda p: torch.optim.NAdam(p, lr=0.01),
    "amsgrad": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True),
    "foreach": lambda p: torch.optim.Adam(p, lr=0.01, foreach=True),
    "fused": lambda p: torch.optim.Adam(p, lr=0.01, fused=True),
    "capturable": lambda p: torch.optim.Adam(p, lr=0.01, capturable=True),
    "maximize": lambda p: torch.optim.Adam(p, lr=0.01, maximize=True),
    "adafactor": lambda p: torch.optim.Adafactor(p, lr=0.01),
}


def new_optimizer(kind, model):
    return OPTIMIZERS[kind]([p for p in model.parameters() if p.requires_grad])


def loss_of(model, x, y):
    return nn.functional.cross_entropy(model(x), y)


def flat(model):
    """All parameters as one vector."""
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])
