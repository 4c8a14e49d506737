"""Estimate wear classes of train axle bearings from vibration traces."""
import numpy as np
import torch
from datasets import Dataset
from torch import nn
from torch.utils.data import DataLoader

POINTS = 1600
CLASSES = 4
EPOCHS = 13


def make_traces(count, seed):
    rng = np.random.default_rng(seed)
    wear = rng.integers(0, CLASSES, count)
    t = np.arange(POINTS, dtype=np.float32) / POINTS
    traces = rng.standard_normal((count, POINTS), dtype=np.float32)
    for i, level in enumerate(wear):
        rate = 35 + 9 * level + rng.uniform(-2, 2)
        traces[i] += 0.5 * np.sin(2 * np.pi * rate * t + rng.uniform(0, 6)) * (1 + level)
    return Dataset.from_dict({"trace": traces, "wear": wear})


def collate(rows):
    x = torch.tensor([row["trace"] for row in rows])
    y = torch.tensor([row["wear"] for row in rows])
    return x.unsqueeze(1), y


def build():
    return nn.Sequential(
        nn.Conv1d(1, 16, 16, stride=4), nn.BatchNorm1d(16), nn.ReLU(),
        nn.Conv1d(16, 32, 8, stride=4), nn.BatchNorm1d(32), nn.ReLU(),
        nn.Conv1d(32, 48, 5, stride=2), nn.ReLU(),
        nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(192, CLASSES))


def accuracy(model, loader):
    model.eval()
    hits = seen = 0
    with torch.no_grad():
        for x, y in loader:
            hits += int((model(x).argmax(1) == y).sum())
            seen += len(y)
    model.train()
    return hits / seen


def main():
    torch.manual_seed(0)
    train = make_traces(5000, 1)
    valid = make_traces(600, 2)
    loader = DataLoader(train, batch_size=64, shuffle=True, collate_fn=collate)
    valid_loader = DataLoader(valid, batch_size=128, collate_fn=collate)
    model = build()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(EPOCHS):
        total = 0.0
        for x, y in loader:
            loss = loss_fn(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        if epoch % 4 == 0 or epoch == EPOCHS - 1:
            print(f"epoch {epoch} loss {total / len(loader):.4f} "
                  f"accuracy {accuracy(model, valid_loader):.3f}")


if __name__ == "__main__":
    main()
