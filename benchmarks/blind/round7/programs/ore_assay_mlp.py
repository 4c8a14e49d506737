"""Predict the grades of four metals from X-ray fluorescence counts of drill cores."""
import numpy as np
import torch
from torch import nn

CHANNELS, METALS, CORES, BATCH, EPOCHS = 512, 4, 12000, 500, 5


def core_counts(rng):
    """Fluorescence lines with overlap, counting noise and a matrix effect."""
    channel = np.arange(CHANNELS)
    lines = np.zeros((METALS, CHANNELS))
    for metal in range(METALS):
        for centre in rng.uniform(30, 480, 3):
            lines[metal] += rng.uniform(0.3, 1.0) * np.exp(-0.5 * ((channel - centre) / 6) ** 2)
    grade = rng.gamma(1.5, 1.0, (CORES, METALS))
    counts = 400 * (grade @ lines) / (1 + 0.1 * grade.sum(1, keepdims=True)) + 80
    counts = rng.poisson(counts)
    return np.log1p(counts), grade


class GradeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(CHANNELS, 1024), nn.GELU(),
            nn.Linear(1024, 1024), nn.GELU(),
            nn.Linear(1024, 1024), nn.GELU(),
            nn.Linear(1024, METALS), nn.Softplus())

    def forward(self, x):
        return self.layers(x)


def main():
    rng = np.random.default_rng(23)
    torch.manual_seed(23)
    counts, grade = core_counts(rng)
    counts = (counts - counts.mean(0)) / (counts.std(0) + 1e-6)
    x, y = torch.from_numpy(counts), torch.from_numpy(grade)
    model = GradeNet().double()
    held = CORES // 12
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-4)
    for epoch in range(EPOCHS):
        order = held + torch.randperm(CORES - held)
        total = 0.0
        for rows in order.split(BATCH):
            loss = nn.functional.mse_loss(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        with torch.no_grad():
            error = (model(x[:held]) - y[:held]).abs().mean().item()
        print(f"epoch {epoch}: loss {total / (CORES - held):.4f} held-out error {error:.4f}")


if __name__ == "__main__":
    main()
