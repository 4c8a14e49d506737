"""Tell plant species apart by the outline and colour of their leaves."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

N_LEAVES = 4096
SIZE = 32
N_SPECIES = 10
EPOCHS = 3


def draw_leaves(rng):
    species = rng.integers(0, N_SPECIES, N_LEAVES)
    grid = (np.arange(SIZE) - 15.5) / 16.0
    yy, xx = np.meshgrid(grid, grid, indexing="ij")
    angle, radius = np.arctan2(yy, xx), np.hypot(yy, xx)
    turn = rng.uniform(0, 2 * np.pi, N_LEAVES)
    images = np.empty((N_LEAVES, 3, SIZE, SIZE), np.float32)
    for i, kind in enumerate(species):
        lobes = 2 + kind % 5
        edge = 0.6 + 0.25 * np.cos(lobes * (angle + turn[i])) * (1.0 if kind < 5 else 0.5)
        inside = (radius < edge).astype(np.float32)
        colour = np.array([0.2 + 0.03 * kind, 0.6, 0.2], np.float32)
        images[i] = colour[:, None, None] * inside
    images += rng.normal(0, 0.25, images.shape).astype(np.float32)
    return torch.from_numpy(images), torch.from_numpy(species)


class Leaves(Dataset):
    def __init__(self, images, species):
        self.images, self.species = images, species

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = self.images[index]
        if torch.rand(()) < 0.5:
            image = image.flip(2)
        return image, self.species[index]


def conv(before, after):
    return nn.Sequential(
        nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()
    )


def make_model():
    return nn.Sequential(
        conv(3, 32), nn.MaxPool2d(2),
        conv(32, 64), nn.MaxPool2d(2),
        conv(64, 128), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(128, N_SPECIES),
    )


def main():
    torch.manual_seed(10)
    images, species = draw_leaves(np.random.default_rng(10))
    train = DataLoader(Leaves(images[:3584], species[:3584]), batch_size=64, shuffle=True)
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for epoch in range(EPOCHS):
        model.train()
        total = 0.0
        for x, y in train:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(y)
        model.eval()
        with torch.no_grad():
            guess = torch.cat([model(part).argmax(1) for part in images[3584:].split(128)])
        accuracy = (guess == species[3584:]).float().mean().item()
        print(f"epoch {epoch}  loss {total / 3584:.4f}  held-out accuracy {accuracy:.3f}", flush=True)


if __name__ == "__main__":
    main()
