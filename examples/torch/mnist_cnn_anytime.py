#!/usr/bin/env python3
"""A convolutional net on MNIST."""
import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

import anytime.torch as anytime
import datasets


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 5, padding=2)
        self.conv2 = nn.Conv2d(32, 64, 5, padding=2)
        self.fc1 = nn.Linear(64 * 7 * 7, 1024)
        self.fc2 = nn.Linear(1024, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


def accuracy(model, test):
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in DataLoader(test, 500))
    model.train()
    return right / len(test)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--data", default="mnist")
    args = parser.parse_args()

    torch.manual_seed(1)
    train, test = datasets.mnist(args.data)
    model = Net()
    opt = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    opt = anytime.Optimizer(model, opt, samples=len(train), batch=args.batch_size)
    loader = DataLoader(train, args.batch_size, shuffle=True, drop_last=True)
    for epoch in range(args.epochs):
        if opt.done: break
        for x, y in loader:
            opt.zero_grad()
            loss = F.cross_entropy(model(x), y)
            opt.backward(loss, len(x))
            opt.step()
            if opt.done: break
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}, accuracy {accuracy(model, test):.4f}")


if __name__ == "__main__":
    main()
