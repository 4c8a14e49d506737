"""Gait classification from accelerometer windows, one file for each walk."""
import multiprocessing as mp
import shutil
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler

WALKS = 900
EPOCHS = 4


def record_walks(folder):
    rng = np.random.default_rng(64)
    t = np.arange(300) / 50.0
    for i in range(WALKS):
        kind = i % 4
        pace = 1.4 + 0.25 * kind + rng.normal(0, 0.05)
        axes = [np.sin(2 * np.pi * pace * k * t + rng.uniform(0, 6)) / k for k in (1, 2, 3)]
        walk = np.stack(axes) + rng.normal(0, 0.5, (3, t.size))
        np.save(folder / f"walk{i:04d}_{kind}.npy", walk.astype(np.float32))


class Walks(Dataset):
    def __init__(self, files):
        self.files = files

    def __len__(self):
        return len(self.files)

    def __getitem__(self, k):
        f = self.files[k]
        x = np.load(f)
        spec = np.abs(np.fft.rfft(x * np.hanning(x.shape[1]), axis=1))[:, :96]
        return torch.from_numpy(np.log1p(spec).astype(np.float32)), int(f.stem[-1])


def make_loader(files):
    return DataLoader(
        Walks(files),
        batch_size=32,
        sampler=RandomSampler(files, generator=torch.Generator().manual_seed(12)),
        num_workers=2,
        multiprocessing_context=mp.get_context("spawn"),
    )


def main():
    folder = Path(tempfile.mkdtemp(prefix="gait_"))
    record_walks(folder)
    loader = make_loader(sorted(folder.glob("*.npy")))
    torch.manual_seed(7)
    net = nn.Sequential(nn.Conv1d(3, 128, 5, padding=2), nn.ReLU(), nn.Conv1d(128, 128, 5, padding=2), nn.ReLU(),
                        nn.Conv1d(128, 64, 5, padding=2), nn.ReLU(), nn.AdaptiveAvgPool1d(8), nn.Flatten(),
                        nn.Linear(512, 4))
    opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    for epoch in range(EPOCHS):
        right = seen = 0
        for x, y in loader:
            out = net(x)
            loss = nn.functional.cross_entropy(out, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            right += int((out.argmax(1) == y).sum())
            seen += len(y)
        print(f"epoch {epoch} accuracy {right / seen:.2f}", flush=True)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
