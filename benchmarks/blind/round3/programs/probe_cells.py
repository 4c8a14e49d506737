"""Linear probe of a pretrained cell-image encoder (weights come from a file, as delivered by the imaging group)."""
import os
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FOLDER = Path(os.environ.get("TMPDIR", ".")) / "cells"
SIDE, STAGES = 56, 6


class Encoder(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        steps, c = [], 3
        for m in (1, 2, 3):
            steps += [nn.Conv2d(c, width * m, 3, padding=1), nn.BatchNorm2d(width * m), nn.ReLU(inplace=True),
                      nn.Conv2d(width * m, width * m, 3, padding=1), nn.BatchNorm2d(width * m), nn.ReLU(inplace=True),
                      nn.MaxPool2d(2)]
            c = width * m
        self.body = nn.Sequential(*steps)
        self.features = c

    def forward(self, x):
        return self.body(x).mean((2, 3))


class CellImages(Dataset):
    """Blob images; the stage is coded in blob count and radius. Random flips and gain at access."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.stage = rng.integers(0, STAGES, n)
        yy, xx = np.mgrid[0:SIDE, 0:SIDE].astype(np.float32)
        self.pixels = 0.1 * rng.standard_normal((n, 3, SIDE, SIDE), dtype=np.float32)
        for i, s in enumerate(self.stage):
            for _ in range(1 + s // 2):
                cy, cx = rng.uniform(8, SIDE - 8, 2)
                r = 4.0 + 3 * (s % 2) + rng.normal() * 0.5
                self.pixels[i, int(rng.integers(3))] += np.exp(-((yy - cy) ** 2 + (xx - cx) ** 2) / (2 * r * r))
        self.rng = np.random.default_rng(seed + 1)

    def __len__(self):
        return len(self.stage)

    def __getitem__(self, i):
        x = self.pixels[i]
        if self.rng.random() < 0.5:
            x = x[:, :, ::-1]
        x = x * np.float32(self.rng.uniform(0.9, 1.1))
        return torch.from_numpy(np.ascontiguousarray(x)), int(self.stage[i])


def delivered_weights():
    FOLDER.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(100)
    torch.save(Encoder().state_dict(), FOLDER / "encoder.pt")
    return FOLDER / "encoder.pt"


def main(epochs=3):
    weights = delivered_weights()
    torch.manual_seed(0)
    encoder = Encoder()
    encoder.load_state_dict(torch.load(weights, weights_only=True))
    encoder.eval()
    head = nn.Sequential(nn.LayerNorm(encoder.features), nn.Linear(encoder.features, STAGES))
    optimiser = torch.optim.Adam(head.parameters(), lr=2e-2)
    loader = DataLoader(CellImages(1200, 1), batch_size=32, shuffle=True)
    held_out = DataLoader(CellImages(300, 7), batch_size=50)

    for epoch in range(epochs):
        total = 0.0
        for x, y in loader:
            loss = nn.functional.cross_entropy(head(encoder(x)), y)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            total += loss.item()
        print(f"epoch {epoch}  loss {total / len(loader):.3f}", flush=True)
    with torch.inference_mode():
        ok = sum(int((head(encoder(x)).argmax(1) == y).sum()) for x, y in held_out)
    print(f"held-out accuracy {ok / 300:.2f}")


if __name__ == "__main__":
    main()
