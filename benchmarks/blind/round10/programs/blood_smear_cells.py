"""White-cell types in blood smear crops, read from a compressed archive."""
import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CELLS, SIZE, TYPES = 1000, 40, 5
EPOCHS, BATCH = 3, 32


def write_archive(path, seed):
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, TYPES, CELLS)
    yy, xx = np.mgrid[-1:1:SIZE * 1j, -1:1:SIZE * 1j]
    images = rng.normal(190, 14, (CELLS, SIZE, SIZE))
    for i, k in enumerate(kind):
        for lobe in range(k + 1):
            a = 2 * np.pi * lobe / (k + 1) + rng.uniform(0, 0.5)
            cx, cy = 0.4 * np.cos(a) * (k > 0), 0.4 * np.sin(a) * (k > 0)
            images[i] -= 90 * np.exp(-((xx - cx) ** 2 + (yy - cy) ** 2) / 0.05)
    np.savez_compressed(path, images=images.clip(0, 255).astype(np.uint8), kind=kind)


class SmearCells(Dataset):
    def __init__(self, path):
        self.archive = np.load(path)
        self.kind = self.archive["kind"]

    def __len__(self):
        return len(self.kind)

    def __getitem__(self, i):
        crop = self.archive["images"][i].astype(np.float32) / 255.0
        if i % 2:
            crop = crop[:, ::-1].copy()
        return torch.from_numpy(crop)[None], int(self.kind[i])


def build():
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, stride=2, padding=2), nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
        nn.Conv2d(32, 48, 3, stride=2, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(192, TYPES))


def main():
    torch.manual_seed(12)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "smears.npz")
        write_archive(path, 90)
        data = SmearCells(path)
        loader = DataLoader(data, batch_size=BATCH, shuffle=True)
        model = build()
        opt = torch.optim.Adam(model.parameters(), lr=3e-3)
        print(f"cells {len(data)}, archive {os.path.getsize(path) / 1e6:.1f} MB")
        for epoch in range(EPOCHS):
            right, loss_sum = 0, 0.0
            for x, y in loader:
                logits = model(x - 0.7)
                loss = nn.functional.cross_entropy(logits, y)
                opt.zero_grad()
                loss.backward()
                opt.step()
                right += (logits.argmax(1) == y).sum().item()
                loss_sum += loss.item() * len(y)
            print(f"epoch {epoch}  loss {loss_sum / CELLS:.4f}  accuracy {right / CELLS:.3f}")


if __name__ == "__main__":
    main()
