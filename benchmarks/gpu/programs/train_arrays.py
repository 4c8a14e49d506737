"""Train a small classifier on arrays in memory, on a GPU if there is one.

python train_arrays.py SECONDS
"""

from __future__ import annotations

import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main(seconds: float) -> None:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    inputs = torch.randn(50_000, 64)
    labels = (inputs[:, 0] > 0).long()
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 2)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(inputs, labels), batch_size=256, shuffle=True)
    began_s = time.monotonic()
    while time.monotonic() - began_s < seconds:
        total = torch.zeros((), device=device)
        for rows, targets in loader:
            loss = nn.functional.cross_entropy(model(rows.to(device)), targets.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach() * loader.batch_size
        print(f"loss {total.item() / len(loader.dataset):.3f}", flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]))
