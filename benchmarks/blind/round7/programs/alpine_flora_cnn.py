"""Classify alpine flowers from small petal images held in memory."""
import numpy as np
import torch
from torch import nn

SIDE, SPECIES, FLOWERS, BATCH, EPOCHS = 32, 12, 2600, 100, 3


def petals(n, seed):
    """Rosettes with a species-specific number of petals, hue and size."""
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[-1:1:SIDE * 1j, -1:1:SIDE * 1j]
    radius, angle = np.hypot(xx, yy), np.arctan2(yy, xx)
    species = rng.integers(0, SPECIES, n)
    count = 3 + species % 6
    turn = rng.uniform(0, 2 * np.pi, n)
    size = 0.5 + 0.2 * (species // 6) + rng.normal(0, 0.03, n)
    images = np.empty((n, 3, SIDE, SIDE), dtype=np.float32)
    for i in range(n):
        edge = size[i] * (0.7 + 0.3 * np.cos(count[i] * angle + turn[i]))
        inside = (radius < edge).astype(np.float32)
        hue = np.array([0.9, 0.3 + 0.05 * species[i], 0.4])[:, None, None]
        images[i] = inside * hue + rng.normal(0, 0.25, (3, SIDE, SIDE))
    return torch.from_numpy(images), torch.from_numpy(species)


def block(inside, outside):
    return nn.Sequential(
        nn.Conv2d(inside, outside, 3, padding=1, bias=False),
        nn.BatchNorm2d(outside), nn.ReLU(), nn.MaxPool2d(2))


def main():
    torch.manual_seed(81)
    images, species = petals(FLOWERS, 1)
    test_images, test_species = petals(800, 2)
    model = nn.Sequential(block(3, 48), block(48, 96), block(96, 128),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, SPECIES))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=0.1, total_steps=EPOCHS * (FLOWERS // BATCH))
    for epoch in range(EPOCHS):
        model.train()
        total = 0.0
        for rows in torch.randperm(FLOWERS).split(BATCH):
            x = images[rows]
            if torch.rand(()) < 0.5:
                x = x.flip(3)
            loss = nn.functional.cross_entropy(model(x), species[rows])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(rows)
        model.eval()
        with torch.inference_mode():
            guess = torch.cat([model(part).argmax(1) for part in test_images.split(200)])
        accuracy = (guess == test_species).float().mean().item()
        print(f"epoch {epoch}: loss {total / FLOWERS:.4f} test accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
