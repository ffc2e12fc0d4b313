#!/usr/bin/env python3
"""A language model of characters: a small transformer, or an LSTM with --lstm."""
import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

import anytime.torch as anytime
import datasets


class Transformer(nn.Module):
    def __init__(self, characters, length=64, width=64):
        super().__init__()
        self.embed = nn.Embedding(characters, width)
        self.place = nn.Parameter(torch.zeros(length, width))
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.1, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2)
        self.out = nn.Linear(width, characters)
        self.register_buffer("mask", torch.triu(torch.full((length, length), -1e9), 1))

    def forward(self, x):
        return self.out(self.layers(self.embed(x) + self.place, self.mask))


class LSTM(nn.Module):
    def __init__(self, characters, width=128):
        super().__init__()
        self.embed = nn.Embedding(characters, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.out = nn.Linear(width, characters)

    def forward(self, x):
        return self.out(self.lstm(self.embed(x))[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--lstm", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(1)
    train, characters = datasets.text()
    model = LSTM(characters) if args.lstm else Transformer(characters)
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    opt = anytime.Optimizer(model, opt, samples=len(train), batch=args.batch_size)
    loader = DataLoader(train, args.batch_size, shuffle=True, drop_last=True)
    for epoch in range(args.epochs):
        if opt.done: break
        for x, y in loader:
            opt.zero_grad()
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
            opt.backward(loss, len(x))
            opt.step()
            if opt.done: break
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
