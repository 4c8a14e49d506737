"""
verdict: none
stack:
  train(sorted(Path("/scratch/era5").glob("*.npy")))
  load_shard(shard)
  np.load(path).astype(np.float32)
why: the shards are read again in each epoch because they are far larger than the memory and each is dropped on purpose before the next one
"""
import gc
from pathlib import Path

import numpy as np
import torch

# 96 shards of 41 GB; the node has 64 GB, so never more than one may be alive
MAX_ALIVE = 1


def load_shard(path):
    return torch.from_numpy(np.load(path).astype(np.float32))


def batches(data, size=512):
    for index in torch.randperm(len(data) - 1).split(size):
        yield data[index], data[index + 1]


def train(shards, epochs=3):
    net = torch.nn.Sequential(torch.nn.Conv2d(20, 64, 5, padding=2), torch.nn.GELU(),
                              torch.nn.Conv2d(64, 20, 5, padding=2))
    optim = torch.optim.AdamW(net.parameters(), lr=2e-4)
    for epoch in range(epochs):
        for shard in shards:
            data = load_shard(shard)
            for now, later in batches(data):
                loss = (net(now) - later).square().mean()
                optim.zero_grad()
                loss.backward()
                optim.step()
            del data, now, later
            gc.collect()
        torch.save(net.state_dict(), f"epoch{epoch}.pt")


if __name__ == "__main__":
    train(sorted(Path("/scratch/era5").glob("*.npy")))
