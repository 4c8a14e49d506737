"""Compress infrared scans of chimney soot with an autoencoder in a single pass over a large file."""
import os
import tempfile

import numpy as np
import torch
from torch import nn

SCANS = 560_000
BANDS = 256
BATCH = 512


def write_scans(path):
    rng = np.random.default_rng(6)
    basis = np.cumsum(rng.standard_normal((24, BANDS), dtype=np.float32), axis=1) * 0.1
    with open(path, "wb") as handle:
        for _ in range(SCANS // 8000):
            amount = rng.standard_normal((8000, 24), dtype=np.float32)
            noise = rng.standard_normal((8000, BANDS), dtype=np.float32) * np.float32(0.1)
            handle.write((amount @ basis + noise).tobytes())


def make_net():
    return nn.Sequential(
        nn.Linear(BANDS, 384), nn.ReLU(),
        nn.Linear(384, 32),
        nn.Linear(32, 384), nn.ReLU(),
        nn.Linear(384, BANDS),
    )


def main():
    torch.manual_seed(1)
    torch.set_num_threads(2)
    net = make_net()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "soot.f32")
        write_scans(path)
        size = os.path.getsize(path)
        seen, recent = 0, 0.0
        with open(path, "rb") as handle:
            while True:
                block = np.fromfile(handle, dtype=np.float32, count=BATCH * 16 * BANDS)
                if not len(block):
                    break
                scans = torch.from_numpy(block.reshape(-1, BANDS))
                for part in scans.split(BATCH):
                    loss = nn.functional.mse_loss(net(part), part)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                recent = loss.item()
                seen += len(scans)
                if seen % (BATCH * 16 * 15) == 0:
                    print(f"scans {seen}: error {recent:.4f}", flush=True)
    print(f"read {size / 1e6:.0f} MB once, {seen} scans, last error {recent:.4f}")


if __name__ == "__main__":
    main()
