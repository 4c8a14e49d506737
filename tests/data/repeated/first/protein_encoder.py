"""
verdict: same
stack:
  fit(Encoder(), torch.load("tokens.pt"))
  model(tokens)
  lib:torch/nn/modules/module.py:Module._call_impl
  sinusoid(self.length, self.width)
  math.sin(pos / 10000 ** (2 * (k // 2) / dim))
call: sinusoid(self.length, self.width)
loop: def forward(self, x) | for tokens in data.split(16) | for epoch in range(30)
why: the position table depends on two sizes of the module, which never change, and is filled in Python in each forward pass
"""
import math

import torch
from torch import nn


def sinusoid(length, dim):
    table = torch.zeros(length, dim)
    for pos in range(length):
        for k in range(dim):
            if k % 2:
                table[pos, k] = math.cos(pos / 10000 ** (2 * (k // 2) / dim))
            else:
                table[pos, k] = math.sin(pos / 10000 ** (2 * (k // 2) / dim))
    return table


class Encoder(nn.Module):
    def __init__(self, length=512, width=128, vocab=26):
        super().__init__()
        self.length = length
        self.width = width
        self.embed = nn.Embedding(vocab, width)
        self.layer = nn.TransformerEncoderLayer(width, 4, batch_first=True)
        self.head = nn.Linear(width, vocab)

    def forward(self, x):
        h = self.embed(x) + sinusoid(self.length, self.width).to(x.device)
        return self.head(self.layer(h))


def fit(model, data):
    optim = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for epoch in range(30):
        for tokens in data.split(16):
            logits = model(tokens)
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())
            optim.zero_grad()
            loss.backward()
            optim.step()
        print(epoch, float(loss))


if __name__ == "__main__":
    fit(Encoder(), torch.load("tokens.pt"))
