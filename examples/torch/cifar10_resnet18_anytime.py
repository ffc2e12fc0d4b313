#!/usr/bin/env python3
"""ResNet-18 with batch norm on CIFAR-10, with a cosine schedule."""
import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

import anytime.torch as anytime
import datasets


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False),
                                          nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(y + self.shortcut(x))


class ResNet18(nn.Module):
    def __init__(self, width=64, classes=10):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, width, 3, 1, 1, bias=False),
                                   nn.BatchNorm2d(width), nn.ReLU())
        blocks, inputs = [], width
        for outputs, stride in ((width, 1), (2 * width, 2), (4 * width, 2), (8 * width, 2)):
            blocks += [Block(inputs, outputs, stride), Block(outputs, outputs, 1)]
            inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.last = nn.Linear(inputs, classes)

    def forward(self, x):
        return self.last(F.adaptive_avg_pool2d(self.blocks(self.first(x)), 1).flatten(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--width", type=int, default=64)
    args = parser.parse_args()

    torch.manual_seed(1)
    train, _ = datasets.cifar10()
    model = ResNet18(args.width)
    opt = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4)
    opt = anytime.Optimizer(model, opt, samples=len(train), batch=args.batch_size)
    loader = DataLoader(train, args.batch_size, shuffle=True, drop_last=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.epochs * len(loader))
    for _ in range(opt.version): schedule.step()  # this process replaces one that died
    for epoch in range(args.epochs):
        if opt.done: break
        for x, y in loader:
            opt.zero_grad()
            loss = F.cross_entropy(model(x), y)
            opt.backward(loss, len(x))
            opt.step()
            if opt.done: break
            if opt.updated: schedule.step()
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}, learning rate "
              f"{opt.param_groups[0]['lr']:.5f}")


if __name__ == "__main__":
    main()
