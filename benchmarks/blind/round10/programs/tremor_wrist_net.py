"""Tells kinds of tremor apart in wrist accelerometer and gyroscope windows (1-D CNN)."""
import json
import os
import tempfile

import numpy as np
import torch
from torch import nn

WINDOWS, CHANNELS, LENGTH, KINDS = 3200, 6, 128, 5
EPOCHS, BATCH = 6, 64


def recordings(seed):
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, KINDS, WINDOWS)
    t = np.arange(LENGTH) / 50.0
    freq = 3.5 + 1.3 * kind + rng.normal(0, 0.5, WINDOWS)
    phase = rng.uniform(0, 2 * np.pi, (WINDOWS, CHANNELS))
    amp = rng.gamma(3.0, 0.3, (WINDOWS, CHANNELS))
    x = np.sin(2 * np.pi * freq[:, None, None] * t + phase[:, :, None])
    x = amp[:, :, None] * x + rng.normal(0, 0.8, (WINDOWS, CHANNELS, LENGTH))
    return x, kind


class TremorNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(CHANNELS, 32, 7, padding=3), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(32, 64, 5, padding=2), nn.ReLU(), nn.AdaptiveAvgPool1d(4))
        self.head = nn.Linear(256, KINDS)

    def forward(self, x):
        return self.head(self.body(x).flatten(1))


def main():
    torch.manual_seed(30)
    x, kind = recordings(30)
    x = torch.from_numpy(x)
    y = torch.from_numpy(kind)
    model = TremorNet().double()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    gen = torch.Generator().manual_seed(31)
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "weights.jsonl"), "w") as log:
            for epoch in range(EPOCHS):
                order = torch.randperm(WINDOWS, generator=gen)
                right, loss_sum = 0, 0.0
                for step, pick in enumerate(order.split(BATCH)):
                    logits = model(x[pick])
                    loss = nn.functional.cross_entropy(logits, y[pick])
                    opt.zero_grad()
                    loss.backward()
                    opt.step()
                    right += (logits.argmax(1) == y[pick]).sum().item()
                    loss_sum += loss.item() * len(pick)
                    state = {k: v.tolist() for k, v in model.state_dict().items()}
                    log.write(json.dumps({"epoch": epoch, "step": step, **state}) + "\n")
                print(f"epoch {epoch}  loss {loss_sum / WINDOWS:.4f}  "
                      f"accuracy {right / WINDOWS:.3f}")
        size = os.path.getsize(os.path.join(folder, "weights.jsonl"))
    print("history written:", size > 0)


if __name__ == "__main__":
    main()
