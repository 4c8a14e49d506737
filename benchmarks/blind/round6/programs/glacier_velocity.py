"""Estimate glacier surface displacement from pairs of satellite patches."""
import numpy as np
import torch
from scipy.ndimage import gaussian_filter, map_coordinates
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIZE = 1000
PATCH = 32
N_PAIRS = 1536
EPOCHS = 9


class PatchPairs(Dataset):
    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        ice = gaussian_filter(rng.normal(size=(SIZE, SIZE)), 1.5)
        ice = (ice / ice.std()).astype(np.float32)
        yy, xx = np.mgrid[0:SIZE, 0:SIZE].astype(np.float32)
        self.flow = np.stack([
            3.0 * np.sin(xx / 160.0) * np.cos(yy / 210.0),
            3.0 * np.cos(xx / 190.0 + yy / 170.0),
        ]).astype(np.float32)
        moved = map_coordinates(ice, [yy + self.flow[0], xx + self.flow[1]], order=1)
        self.before = ice
        self.after = moved + rng.normal(0, 0.1, ice.shape).astype(np.float32)
        self.corners = rng.integers(8, SIZE - PATCH - 8, (N_PAIRS, 2))

    def __len__(self):
        return N_PAIRS

    def __getitem__(self, index):
        top, left = self.corners[index]
        rows, cols = slice(top - 8, top + PATCH + 8), slice(left - 8, left + PATCH + 8)
        pair = []
        for image in (self.before, self.after):
            patch = image[rows, cols]
            detail = patch - gaussian_filter(patch, 4.0)
            pair.append(detail[8:-8, 8:-8] / (detail.std() + 1e-6))
        target = self.flow[:, top + PATCH // 2, left + PATCH // 2]
        return torch.from_numpy(np.stack(pair)), torch.from_numpy(target.copy())


def make_model():
    return nn.Sequential(
        nn.Conv2d(2, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 48, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(48, 64, 3, padding=1), nn.ReLU(),
        nn.Flatten(), nn.Linear(64 * 64, 64), nn.ReLU(), nn.Linear(64, 2),
    )


def main():
    torch.manual_seed(1)
    pairs = PatchPairs(seed=1)
    loader = DataLoader(
        pairs,
        batch_size=48,
        shuffle=True,
        num_workers=2,
        multiprocessing_context="spawn",
    )
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        total = 0.0
        for images, flow in loader:
            loss = nn.functional.mse_loss(model(images), flow)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(flow)
        print(f"epoch {epoch}  rms error {(total / N_PAIRS) ** 0.5:.3f} pixels", flush=True)
    spread = float(np.std(pairs.flow))
    print(f"spread of the true displacement {spread:.3f} pixels")


if __name__ == "__main__":
    main()
