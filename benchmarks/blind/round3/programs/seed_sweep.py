"""Same small network under several seeds, two seeds at a time, each in its own process."""
import os

import numpy as np
import torch
import torch.multiprocessing as mp
from torch import nn

SEEDS = (1, 2, 3, 4)


def spirals(n=6000, arms=5):
    rng = np.random.default_rng(0)
    k = rng.integers(0, arms, n)
    r = np.sqrt(rng.random(n))
    a = 2 * np.pi * k / arms + 5 * r + 0.15 * rng.normal(size=n)
    f = np.stack([r * np.cos(a), r * np.sin(a)], 1)
    bands = np.concatenate([np.sin(f * w) for w in range(1, 9)] + [np.cos(f * w) for w in range(1, 9)], 1)
    return torch.from_numpy(bands.astype(np.float32)), torch.from_numpy(k)


def fit(seed, epochs=20, width=384):
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    x, y = spirals()
    net = nn.Sequential(nn.Linear(x.shape[1], width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(),
                        nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 5))
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    cut = 5000
    for _ in range(epochs):
        for rows in torch.randperm(cut).split(128):
            loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
    with torch.no_grad():
        acc = (net(x[cut:]).argmax(1) == y[cut:]).float().mean().item()
    return seed, acc


def main():
    ctx = mp.get_context("spawn")
    with ctx.Pool(processes=min(2, os.cpu_count() or 1)) as pool:
        results = sorted(pool.imap_unordered(fit, SEEDS, chunksize=1))
    for seed, acc in results:
        print(f"seed {seed}: {acc:.3f}")
    accs = [a for _, a in results]
    print(f"mean {np.mean(accs):.3f}  spread {np.ptp(accs):.3f}")


if __name__ == "__main__":
    main()
