"""Name the texture of basalt in photographs of thin sections."""
import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

TEXTURES = 5
SIDE = 64
EPOCHS = 4

torch.set_num_threads(1)


def write_sections(folder, count, seed):
    rng = np.random.default_rng(seed)
    entries = []
    yy, xx = np.mgrid[0:128, 0:128] / 128
    for i in range(count):
        kind = int(rng.integers(0, TEXTURES))
        angle = rng.uniform(0, np.pi)
        along = xx * np.cos(angle) + yy * np.sin(angle)
        grain = np.sin(2 * np.pi * (5 + 3 * kind) * along + rng.uniform(0, 6))
        rgb = 120 + 35 * grain[..., None] + 25 * rng.standard_normal((128, 128, 3))
        image = Image.fromarray(rgb.clip(0, 255).astype(np.uint8))
        path = folder / f"section_{seed}_{i:04d}.jpg"
        image.resize((512, 512), Image.BICUBIC).save(path, quality=92)
        entries.append((path, kind))
    return entries


class Sections(Dataset):
    def __init__(self, entries):
        self.entries = entries

    def __len__(self):
        return len(self.entries)

    def __getitem__(self, index):
        path, kind = self.entries[index]
        image = Image.open(path).convert("RGB").resize((SIDE, SIDE), Image.BILINEAR)
        pixels = np.asarray(image, dtype=np.float32) / 128.0 - 1.0
        return torch.from_numpy(pixels).permute(2, 0, 1), kind


def build():
    return nn.Sequential(
        nn.Conv2d(3, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(24, 48, 3, padding=1), nn.BatchNorm2d(48), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(48, 96, 3, padding=1), nn.BatchNorm2d(96), nn.ReLU(),
        nn.Conv2d(96, 96, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(96, TEXTURES))


def evaluate(model, loader):
    model.eval()
    hits = 0
    with torch.no_grad():
        for image, kind in loader:
            hits += int((model(image).argmax(1) == kind).sum())
    model.train()
    return hits / len(loader.dataset)


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train = Sections(write_sections(folder, 360, 1))
        valid = Sections(write_sections(folder, 60, 2))
        loader = DataLoader(train, batch_size=30, shuffle=True)
        valid_loader = DataLoader(valid, batch_size=30)
        model = build()
        optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
        loss_fn = nn.CrossEntropyLoss()
        for epoch in range(EPOCHS):
            total = 0.0
            for image, kind in loader:
                loss = loss_fn(model(image), kind)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item()
            print(f"epoch {epoch} loss {total / len(loader):.4f} "
                  f"valid {evaluate(model, valid_loader):.3f}")


if __name__ == "__main__":
    main()
