#!/usr/bin/env python3
"""Logistic regression on MNIST with Adam."""
import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

import anytime.torch as anytime
import datasets


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=60)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--data", default="mnist")
    args = parser.parse_args()

    torch.manual_seed(1)
    train, test = datasets.mnist(args.data)
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
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
        x, y = test.tensors
        with torch.no_grad():
            right = (model(x).argmax(1) == y).float().mean().item()
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}, accuracy {right:.4f}")


if __name__ == "__main__":
    main()
