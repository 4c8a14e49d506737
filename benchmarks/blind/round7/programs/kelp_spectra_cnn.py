"""Estimate kelp cover from reflectance spectra taken by a drone line scanner."""
import numpy as np
import torch
from torch import nn

SPECTRA, BANDS, BATCH, STEPS = 6000, 1200, 64, 900


def make_spectra(rng):
    """A mixture of water, sand and kelp end members with sensor noise."""
    band = np.linspace(0.0, 1.0, BANDS)
    water = np.exp(-4.0 * band)
    sand = 0.3 + 0.4 * band
    kelp = 0.1 + 0.5 / (1.0 + np.exp(-40.0 * (band - 0.7)))
    cover = rng.dirichlet([1.5, 1.0, 1.2], SPECTRA)
    spectra = []
    for share in cover:
        clean = share[0] * water + share[1] * sand + share[2] * kelp
        noisy = clean + rng.normal(0, 0.02, BANDS)
        spectra.append(noisy.astype(np.float32))
    return spectra, cover[:, 2].astype(np.float32)


class CoverNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(1, 12, 11, stride=4), nn.ReLU(),
            nn.Conv1d(12, 24, 7, stride=3), nn.ReLU(),
            nn.Conv1d(24, 24, 5, stride=2), nn.ReLU(),
            nn.Flatten())
        self.out = nn.Sequential(nn.LazyLinear(64), nn.ReLU(), nn.Linear(64, 1), nn.Sigmoid())

    def forward(self, x):
        return self.out(self.body(x.unsqueeze(1))).squeeze(1)


def draw_batch(spectra, cover, rng):
    picks = rng.integers(0, SPECTRA, BATCH)
    rows = [spectra[i] * rng.uniform(0.9, 1.1) for i in picks]
    x = torch.tensor(rows, dtype=torch.float32)
    y = torch.from_numpy(cover[picks])
    return x, y


def main():
    rng = np.random.default_rng(4)
    torch.manual_seed(4)
    spectra, cover = make_spectra(rng)
    model = CoverNet()
    model(torch.zeros(2, BANDS))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    running = 0.0
    for step in range(1, STEPS + 1):
        x, y = draw_batch(spectra, cover, rng)
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
        if step % 225 == 0:
            print(f"step {step}: mse {running / 225:.5f}")
            running = 0.0


if __name__ == "__main__":
    main()
