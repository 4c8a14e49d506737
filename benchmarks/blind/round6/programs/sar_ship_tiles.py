"""Ship detection on radar scenes: train a patch classifier on random crops."""
import numpy as np
import torch
from scipy.ndimage import gaussian_filter
from torch import nn
from torch.utils.data import DataLoader, Dataset

N_SCENES = 20
SIZE = 1024
PATCH = 64
PATCHES_PER_EPOCH = 256
EPOCHS = 4


def make_scene(rng):
    sea = gaussian_filter(rng.normal(size=(SIZE // 8, SIZE // 8)), 4)
    sea = np.kron(1.0 + 2.0 * (sea - sea.min()), np.ones((8, 8)))
    scene = np.stack([sea, 0.4 * sea]) * rng.exponential(300.0, (2, SIZE, SIZE))
    ships = rng.integers(40, SIZE - 40, (150, 2))
    for row, col in ships:
        length = int(rng.integers(3, 9))
        scene[:, row - 1 : row + 2, col - length : col + length] += 9000.0
    return np.clip(scene, 1, 65535).astype(np.uint16), ships


class PatchDataset(Dataset):
    def __init__(self, scenes, seed):
        self.scenes = [pixels for pixels, _ in scenes]
        self.ships = [ships for _, ships in scenes]
        self.seed = seed
        self.epoch = 0

    def __len__(self):
        return PATCHES_PER_EPOCH

    def __getitem__(self, index):
        rng = np.random.default_rng((self.seed, self.epoch, index))
        number = int(rng.integers(len(self.scenes)))
        if rng.random() < 0.5:
            row, col = self.ships[number][rng.integers(150)] + rng.integers(-20, 20, 2)
        else:
            row, col = rng.integers(PATCH, SIZE - PATCH, 2)
        top = int(np.clip(row - PATCH // 2, 0, SIZE - PATCH))
        left = int(np.clip(col - PATCH // 2, 0, SIZE - PATCH))
        pixels = self.scenes[number].astype(np.float32)
        decibel = 10.0 * np.log10(pixels)
        scaled = (decibel - 27.0) / 6.0
        patch = scaled[:, top : top + PATCH, left : left + PATCH].copy()
        inside = np.abs(self.ships[number] - (top + 32, left + 32)).max(axis=1) < 26
        return torch.from_numpy(patch), torch.tensor(float(inside.any()))


def make_model():
    return nn.Sequential(
        nn.Conv2d(2, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 48, 3, padding=1), nn.ReLU(), nn.AdaptiveMaxPool2d(2),
        nn.Flatten(), nn.Linear(192, 1),
    )


def main():
    torch.manual_seed(2)
    rng = np.random.default_rng(2)
    data = PatchDataset([make_scene(rng) for _ in range(N_SCENES)], seed=11)
    loader = DataLoader(data, batch_size=32)
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        data.epoch = epoch
        losses, hits = [], 0
        for x, y in loader:
            logit = model(x).squeeze(1)
            loss = nn.functional.binary_cross_entropy_with_logits(logit, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            hits += ((logit > 0) == (y > 0.5)).sum().item()
        print(f"epoch {epoch}  loss {np.mean(losses):.4f}  accuracy {hits / len(data):.3f}", flush=True)


if __name__ == "__main__":
    main()
