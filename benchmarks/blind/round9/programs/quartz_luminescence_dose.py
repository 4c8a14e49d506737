"""Burial dose of quartz grains from luminescence readings kept in a Hugging Face dataset."""
import os
import tempfile

os.environ["HF_DATASETS_OFFLINE"] = "1"

import numpy as np
import torch
from datasets import Dataset, disable_progress_bars, load_from_disk
from torch import nn
from torch.utils.data import DataLoader

GRAINS, CHANNELS, EPOCHS = 2400, 6000, 9
SUMMARY = 24


def measure(rng):
    dose = rng.gamma(3.0, 20.0, GRAINS).astype(np.float32)
    time = np.linspace(0, 8, CHANNELS, dtype=np.float32)
    fast = dose[:, None] * np.exp(-time) + 0.3 * dose[:, None] * np.exp(-0.2 * time)
    curve = (fast + rng.normal(0, 2.0, (GRAINS, CHANNELS))).astype(np.float32)
    summary = np.log1p(np.clip(curve.reshape(GRAINS, SUMMARY, -1).mean(2), 0, None))
    return {
        "grain": [f"Q{i:05d}" for i in range(GRAINS)],
        "curve": curve,
        "summary": summary.astype(np.float32),
        "dose": dose,
    }


class Grains(torch.utils.data.Dataset):
    def __init__(self, folder):
        self.table = load_from_disk(folder)

    def __len__(self):
        return len(self.table)

    def __getitem__(self, index):
        grain = self.table[index]
        return torch.tensor(grain["summary"]), torch.tensor(grain["dose"])


def main():
    disable_progress_bars()
    torch.manual_seed(10)
    folder = tempfile.TemporaryDirectory()
    Dataset.from_dict(measure(np.random.default_rng(10))).save_to_disk(folder.name)
    loader = DataLoader(Grains(folder.name), batch_size=32, shuffle=True)
    net = nn.Sequential(nn.Linear(SUMMARY, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 1))
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
    for epoch in range(EPOCHS):
        total = 0.0
        for summary, dose in loader:
            guess = net(summary).squeeze(1)
            loss = nn.functional.smooth_l1_loss(guess, torch.log1p(dose))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(dose)
        if epoch % 3 == 2:
            print(f"epoch {epoch + 1}: loss {total / GRAINS:.5f}")
    folder.cleanup()


if __name__ == "__main__":
    main()
