"""Predict yarn breaks on a weaving loom from short tension records."""
import numpy as np
import torch
from torch import nn

STEPS = 120
CHANNELS = 6
HIDDEN = 96
BATCH = 32


def make_records(count, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(STEPS) / STEPS
    phase = rng.uniform(0, 2 * np.pi, (count, 1, CHANNELS))
    rate = rng.uniform(3, 9, (count, 1, CHANNELS))
    x = np.sin(2 * np.pi * rate * t[None, :, None] + phase)
    x += 0.4 * rng.standard_normal(x.shape)
    label = rng.integers(0, 2, count)
    spot = rng.integers(40, 100, count)
    for i in np.flatnonzero(label):
        x[i, spot[i]:spot[i] + 10, :3] += 1.2
    return (torch.tensor(x, dtype=torch.float32),
            torch.tensor(label, dtype=torch.float32))


class TensionNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inlet = nn.Linear(CHANNELS, 48)
        self.cell = nn.LSTMCell(48, HIDDEN)
        self.head = nn.Linear(HIDDEN, 1)

    def forward(self, x):
        z = torch.relu(self.inlet(x))
        h = x.new_zeros(len(x), HIDDEN)
        c = x.new_zeros(len(x), HIDDEN)
        states = []
        for t in range(z.shape[1]):
            h, c = self.cell(z[:, t], (h, c))
            states.append(h)
        out = torch.stack(states, dim=1)
        return self.head(out.mean(dim=1)).squeeze(1)


def main():
    torch.manual_seed(0)
    x, y = make_records(6400, 1)
    x_val, y_val = make_records(1024, 2)
    net = TensionNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    loss_fn = nn.BCEWithLogitsLoss()
    for epoch in range(5):
        order = torch.randperm(len(x))
        for start in range(0, len(x), BATCH):
            rows = order[start:start + BATCH]
            loss = loss_fn(net(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            hit = ((net(x_val) > 0) == (y_val > 0.5)).float().mean()
        print(f"epoch {epoch} loss {loss.item():.4f} accuracy {hit.item():.3f}")


if __name__ == "__main__":
    main()
