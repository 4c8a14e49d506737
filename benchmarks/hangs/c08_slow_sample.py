"""DataLoader with two workers; two of the samples are huge and take 40 s to decode."""
import time
import zlib

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BATCH, BATCHES = 16, 900
HUGE = {300 * BATCH + 5, 650 * BATCH + 2}


class Scans(Dataset):
    def __init__(self):
        self.blob = zlib.compress(np.arange(250_000, dtype=np.float32).tobytes(), 6)

    def __len__(self):
        return BATCH * BATCHES

    def __getitem__(self, i):
        x = np.random.default_rng(i).standard_normal(128).astype(np.float32)
        if i in HUGE:
            end = time.monotonic() + 40
            while time.monotonic() < end:  # slice by slice
                block = np.frombuffer(zlib.decompress(self.blob), np.float32)
                x[0] = block.mean() / 250_000
        return x, np.float32(x[:8].sum())


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    t0 = time.monotonic()
    for n, (x, y) in enumerate(DataLoader(Scans(), batch_size=BATCH, num_workers=2), 1):
        loss = nn.functional.mse_loss(model(x).squeeze(1), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        time.sleep(0.04)
        if n % 50 == 0:
            print(f"{time.monotonic() - t0:6.1f} s  batch {n}/{BATCHES}  loss {loss.item():.4f}", flush=True)
    print("done")


if __name__ == "__main__":
    main()
