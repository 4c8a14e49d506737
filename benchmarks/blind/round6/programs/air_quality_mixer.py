"""Nowcast of fine dust at 64 stations with an MLP-mixer on hourly measurements."""
import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"

import numpy as np
import torch
from torch import nn

N_STATIONS = 64
N_HOURS = 6000
WINDOW = 48
WIDTH = 256
BATCH = 32
STEPS = 40


def make_measurements(rng):
    hours = np.arange(N_HOURS)
    traffic = np.maximum(0, np.sin(2 * np.pi * (hours - 7) / 12.0))
    wind = np.convolve(rng.normal(size=N_HOURS), np.ones(24) / 5.0, mode="same")
    exposure = rng.uniform(0.3, 1.5, N_STATIONS)
    dust = np.zeros((N_HOURS, N_STATIONS), np.float32)
    level = np.full(N_STATIONS, 10.0)
    for hour in range(N_HOURS):
        loss = 0.08 + 0.05 * max(wind[hour], 0.0)
        level = level * (1 - loss) + 3.0 * exposure * traffic[hour]
        level = np.maximum(level + rng.normal(0, 0.5, N_STATIONS), 0.0)
        dust[hour] = level
    return (dust - dust.mean()) / dust.std()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_a, self.norm_b = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.across = nn.Sequential(
            nn.Linear(N_STATIONS, 128), nn.GELU(), nn.Linear(128, N_STATIONS)
        )
        self.within = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, z):
        z = z + self.across(self.norm_a(z).transpose(1, 2)).transpose(1, 2)
        return z + self.within(self.norm_b(z))


def main():
    torch.manual_seed(0)
    rng = np.random.default_rng(14)
    dust = torch.from_numpy(make_measurements(rng))
    lift, head = nn.Linear(WINDOW, WIDTH), nn.Linear(WIDTH, 1)
    model = nn.Sequential(lift, *(Block() for _ in range(4)), head)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    losses = []
    for step in range(STEPS):
        first = rng.integers(0, N_HOURS - WINDOW - 2, BATCH)
        window = torch.stack([dust[i : i + WINDOW].T for i in first])
        target = torch.stack([dust[i + WINDOW + 1] for i in first])
        loss = nn.functional.mse_loss(model(window).squeeze(2), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if (step + 1) % 10 == 0:
            print(f"step {step + 1:3d}  loss {np.mean(losses[-10:]):.4f}", flush=True)
    size = sum(p.numel() for p in model.parameters())
    print(f"{size} parameters, final loss {np.mean(losses[-8:]):.4f}")


if __name__ == "__main__":
    main()
