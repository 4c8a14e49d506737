"""Skip-gram vectors for protein k-mers with negative sampling."""
import argparse

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def make_reads(n_reads, length, vocab, seed):
    """Reads walk on a ring of k-mers with short jumps, so neighbours share context."""
    rng = np.random.default_rng(seed)
    start = (rng.zipf(1.3, n_reads) * 37) % vocab
    jumps = rng.integers(-6, 7, (n_reads, length))
    jumps[rng.random(jumps.shape) < 0.02] = vocab // 3
    return (start[:, None] + jumps.cumsum(1)) % vocab


def positive_pairs(reads, window):
    pairs = []
    for d in range(1, window + 1):
        pairs.append(np.stack([reads[:, :-d].ravel(), reads[:, d:].ravel()], 1))
        pairs.append(np.stack([reads[:, d:].ravel(), reads[:, :-d].ravel()], 1))
    return np.concatenate(pairs)


class SkipGram(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.centre = nn.Embedding(vocab, dim, sparse=True)
        self.context = nn.Embedding(vocab, dim, sparse=True)
        nn.init.uniform_(self.centre.weight, -0.5 / dim, 0.5 / dim)
        nn.init.zeros_(self.context.weight)

    def forward(self, c, pos, neg):
        v = self.centre(c)
        good = (v * self.context(pos)).sum(-1)
        bad = torch.einsum("bd,bkd->bk", v, self.context(neg))
        return -(F.logsigmoid(good) + F.logsigmoid(-bad).sum(1)).mean()


class NoiseSampler:
    def __init__(self, counts, k, seed):
        weight = counts.astype(np.float64) ** 0.75
        self.p = weight / weight.sum()
        self.k = k
        self.rng = np.random.default_rng(seed)

    def draw(self, centres):
        out = np.empty((len(centres), self.k), np.int64)
        for row in range(len(centres)):
            out[row] = self.rng.choice(len(self.p), size=self.k, p=self.p)
        return torch.from_numpy(out)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--vocab", type=int, default=8000)
    ap.add_argument("--dim", type=int, default=128)
    ap.add_argument("--negatives", type=int, default=10)
    ap.add_argument("--batch", type=int, default=512)
    ap.add_argument("--steps", type=int, default=550)
    opt = ap.parse_args()

    torch.manual_seed(1)
    reads = make_reads(4000, 60, opt.vocab, seed=1)
    pairs = positive_pairs(reads, window=4)
    counts = np.bincount(reads.ravel(), minlength=opt.vocab) + 1
    noise = NoiseSampler(counts, opt.negatives, seed=2)
    order = np.random.default_rng(3)
    model = SkipGram(opt.vocab, opt.dim)
    sgd = torch.optim.SGD(model.parameters(), lr=20.0)

    running = []
    for step in range(opt.steps):
        rows = pairs[order.integers(0, len(pairs), opt.batch)]
        c, pos = torch.from_numpy(rows[:, 0]), torch.from_numpy(rows[:, 1])
        loss = model(c, pos, noise.draw(rows[:, 0]))
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        running.append(loss.detach())
        if (step + 1) % 100 == 0:
            print(f"step {step + 1}: {torch.stack(running[-100:]).mean():.3f}", flush=True)
    w = F.normalize(model.centre.weight.detach(), dim=1)
    near = (w * w.roll(3, 0)).sum(1).mean()
    far = (w * w.roll(opt.vocab // 2, 0)).sum(1).mean()
    print(f"similarity near {near:.3f} far {far:.3f}")


if __name__ == "__main__":
    main()
