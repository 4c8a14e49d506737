"""Rhythm classification of two-lead ECG strips with a small 1-D CNN."""
import tempfile
from pathlib import Path

import numpy as np
import torch
from datasets import Dataset, load_from_disk
from torch import nn

N_STRIPS = 3000
N_SAMPLES = 1500
N_LEADS = 2
BATCH = 64
EPOCHS = 9


def make_strips(rng):
    t = np.arange(N_SAMPLES) / 250.0
    label = rng.integers(0, 3, N_STRIPS)
    rate = np.where(label == 1, 1.9, 1.1) + rng.normal(0.0, 0.1, N_STRIPS)
    jitter = np.where(label == 2, 0.9, 0.05)
    phase = rate[:, None] * t + jitter[:, None] * np.sin(0.7 * t + rng.uniform(0, 6, (N_STRIPS, 1)))
    spike = np.exp(-(((phase % 1.0) - 0.5) / 0.03) ** 2)
    wave = 0.2 * np.exp(-(((phase % 1.0) - 0.75) / 0.06) ** 2)
    leads = np.stack([spike + wave, 0.6 * spike - 0.3 * wave], axis=1)
    leads += rng.normal(0.0, 0.15, leads.shape)
    return leads.astype(np.float32), label


def build(folder, rng):
    leads, label = make_strips(rng)
    table = Dataset.from_dict({"strip": leads.reshape(N_STRIPS, -1), "label": label})
    table.save_to_disk(str(folder))


def make_model():
    return nn.Sequential(
        nn.Conv1d(N_LEADS, 16, 15, stride=4), nn.BatchNorm1d(16), nn.ReLU(),
        nn.Conv1d(16, 32, 9, stride=2), nn.BatchNorm1d(32), nn.ReLU(),
        nn.Conv1d(32, 32, 9, stride=2), nn.ReLU(),
        nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(128, 3),
    )


def run_epoch(model, optimizer, strips, order):
    correct = total = 0
    for start in range(0, len(order), BATCH):
        rows = strips[order[start : start + BATCH]]
        x = torch.tensor(rows["strip"]).view(-1, N_LEADS, N_SAMPLES)
        y = torch.tensor(rows["label"])
        output = model(x)
        if optimizer is not None:
            optimizer.zero_grad()
            nn.functional.cross_entropy(output, y).backward()
            optimizer.step()
        correct += (output.argmax(1) == y).sum().item()
        total += len(y)
    return correct / total


def main():
    torch.manual_seed(0)
    rng = np.random.default_rng(8)
    with tempfile.TemporaryDirectory() as tmp:
        build(Path(tmp) / "strips", rng)
        strips = load_from_disk(str(Path(tmp) / "strips"))
        train, held = list(range(2600)), list(range(2600, N_STRIPS))
        model = make_model()
        optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
        for epoch in range(EPOCHS):
            order = [train[i] for i in rng.permutation(len(train))]
            accuracy = run_epoch(model, optimizer, strips, order)
            print(f"epoch {epoch}  training accuracy {accuracy:.3f}", flush=True)
        model.eval()
        with torch.no_grad():
            print(f"held-out accuracy {run_epoch(model, None, strips, held):.3f}")


if __name__ == "__main__":
    main()
