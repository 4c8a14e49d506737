"""Click model on hashed categorical fields, wide table plus a small tower."""
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn


@dataclass
class Settings:
    buckets: int = 1 << 20
    fields: int = 16
    dim: int = 24
    batch: int = 2048
    steps: int = 200
    lr: float = 0.3


class Clicks:
    """Log lines arrive in time order; most ids are rare."""

    def __init__(self, cfg, seed):
        self.cfg = cfg
        self.rng = np.random.default_rng(seed)
        self.salt = np.random.default_rng(0).integers(1, 2 ** 31, cfg.fields)
        self.effect = np.random.default_rng(1).normal(0, 0.6, (cfg.fields, 997))

    def next(self):
        c = self.cfg
        raw = self.rng.zipf(1.25, (c.batch, c.fields)) % 5_000_000
        z = self.effect[np.arange(c.fields), raw % 997].sum(1) - 1.0
        y = (self.rng.random(c.batch) < 1 / (1 + np.exp(-z))).astype(np.float32)
        hashed = (raw * self.salt + 12345) % c.buckets
        return torch.from_numpy(hashed), torch.from_numpy(y)


class ClickNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.table = nn.Embedding(cfg.buckets, cfg.dim)
        nn.init.normal_(self.table.weight, std=0.05)
        wide = cfg.fields * cfg.dim
        self.tower = nn.Sequential(nn.Linear(wide, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 1))

    def forward(self, ids):
        return self.tower(self.table(ids).flatten(1)).squeeze(1)


def main():
    cfg = Settings()
    torch.manual_seed(42)
    net = ClickNet(cfg)
    sgd = torch.optim.SGD(net.parameters(), lr=cfg.lr)
    stream, fresh = Clicks(cfg, 10), Clicks(cfg, 11)
    losses = []
    for step in range(cfg.steps):
        ids, y = stream.next()
        loss = nn.functional.binary_cross_entropy_with_logits(net(ids), y)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        losses.append(loss.item())
    with torch.no_grad():
        held = [nn.functional.binary_cross_entropy_with_logits(net(i), t).item()
                for i, t in (fresh.next() for _ in range(10))]
    print(f"log loss: first 20 steps {np.mean(losses[:20]):.3f}, last 20 {np.mean(losses[-20:]):.3f}, fresh {np.mean(held):.3f}")


if __name__ == "__main__":
    main()
