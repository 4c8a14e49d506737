"""Train a linear probe for moss genera on top of a convolutional encoder."""
import numpy as np
import torch
from torch import nn

SIDE, GENERA, FRONDS, BATCH, STEPS = 64, 9, 1200, 32, 84


def frond_photos(n, seed):
    """Striped, branching textures whose angle and period depend on the genus."""
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[0:SIDE, 0:SIDE] / SIDE
    genus = rng.integers(0, GENERA, n)
    angle = genus * np.pi / GENERA + rng.normal(0, 0.1, n)
    period = 4 + (genus % 3) * 3 + rng.normal(0, 0.4, n)
    photos = np.empty((n, 3, SIDE, SIDE), dtype=np.float32)
    for i in range(n):
        along = xx * np.cos(angle[i]) + yy * np.sin(angle[i])
        stripe = np.sin(2 * np.pi * period[i] * along + rng.uniform(0, 6))
        photos[i] = stripe + rng.normal(0, 0.7, (3, SIDE, SIDE))
    return torch.from_numpy(photos), torch.from_numpy(genus)


def encoder():
    torch.manual_seed(77)
    return nn.Sequential(
        nn.Conv2d(3, 32, 5, padding=2, stride=2), nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 96, 3, padding=1), nn.ReLU(),
        nn.Conv2d(96, 96, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(4), nn.Flatten())


def accuracy(backbone, head, photos, genus):
    with torch.no_grad():
        hits = 0
        for start in range(0, len(photos), 64):
            guess = head(backbone(photos[start:start + 64])).argmax(1)
            hits += int((guess == genus[start:start + 64]).sum())
    return hits / len(photos)


def main():
    photos, genus = frond_photos(FRONDS, 1)
    test_photos, test_genus = frond_photos(320, 2)
    backbone = encoder()
    backbone.eval()
    head = nn.Linear(96 * 16, GENERA)
    optimizer = torch.optim.Adam(head.parameters(), lr=1e-3)
    rng = np.random.default_rng(5)
    for step in range(1, STEPS + 1):
        rows = torch.from_numpy(rng.integers(0, FRONDS, BATCH))
        view = torch.roll(photos[rows], shifts=tuple(rng.integers(-8, 9, 2).tolist()), dims=(2, 3))
        view = view + 0.2 * torch.randn_like(view)
        loss = nn.functional.cross_entropy(head(backbone(view)), genus[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 7 == 0:
            score = accuracy(backbone, head, test_photos, test_genus)
        if step % 28 == 0:
            print(f"step {step}: loss {loss.item():.3f} test accuracy {score:.3f}")


if __name__ == "__main__":
    main()
