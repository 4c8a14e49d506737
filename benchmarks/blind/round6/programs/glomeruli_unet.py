"""Segment touching cells in tissue images with a small U-Net and border weights."""
import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from scipy.ndimage import distance_transform_edt, gaussian_filter
from torch import nn

SIZE = 96
N_IMAGES = 48
N_CELLS = 20
BATCH = 6
STEPS = 88


def make_image(rng):
    labels = np.zeros((SIZE, SIZE), np.int32)
    yy, xx = np.mgrid[0:SIZE, 0:SIZE]
    for number in range(1, N_CELLS + 1):
        cy, cx = rng.uniform(6, SIZE - 6, 2)
        radius = rng.uniform(4, 9)
        labels[((yy - cy) ** 2 + (xx - cx) ** 2 < radius**2) & (labels == 0)] = number
    image = gaussian_filter((labels > 0).astype(float), 1.5) + rng.normal(0, 0.3, labels.shape)
    return image.astype(np.float32), labels


def border_weight(labels):
    """Pixels between two close cells count more in the loss."""
    away = [distance_transform_edt(labels != n) for n in range(1, N_CELLS + 1)]
    nearest = np.sort(np.stack(away), axis=0)[:2].sum(axis=0)
    return (1.0 + 8.0 * np.exp(-(nearest**2) / 50.0) * (labels == 0)).astype(np.float32)


class Cells:
    def __init__(self, rng):
        pairs = [make_image(rng) for _ in range(N_IMAGES)]
        self.images = [image for image, _ in pairs]
        self.labels = [labels for _, labels in pairs]

    def batch(self, rng):
        picked = rng.choice(N_IMAGES, BATCH, replace=False)
        weights = [border_weight(self.labels[i]) for i in picked]
        images = np.stack([self.images[i] for i in picked])[:, None]
        truth = np.stack([self.labels[i] > 0 for i in picked]).astype(np.float32)[:, None]
        return [torch.from_numpy(a) for a in (images, truth, np.stack(weights)[:, None])]


class UNet(nn.Module):
    def __init__(self, widths=(8, 16, 32, 64)):
        super().__init__()
        before = (1,) + widths[:-1]
        self.down = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1) for a, b in zip(before, widths))
        self.up = nn.ModuleList(
            nn.Conv2d(a + b, a, 3, padding=1) for a, b in zip(widths[:-1], widths[1:])
        )
        self.out = nn.Conv2d(widths[0], 1, 1)

    def forward(self, x):
        kept = []
        for level, conv in enumerate(self.down):
            x = torch.relu(conv(x if level == 0 else nn.functional.max_pool2d(x, 2)))
            kept.append(x)
        for level in (2, 1, 0):
            x = nn.functional.interpolate(x, scale_factor=2)
            x = torch.relu(self.up[level](torch.cat([kept[level], x], 1)))
        return self.out(x)


def save_panels(folder, step, images, truth, logit):
    for row in range(3):
        panel = torch.cat([images[row, 0], truth[row, 0], torch.sigmoid(logit[row, 0])], dim=1)
        pixels = (panel.clamp(0, 1) * 255).byte().numpy()
        picture = Image.fromarray(pixels).convert("RGB").resize((6 * SIZE, 2 * SIZE))
        picture.save(folder / f"step{step:04d}_{row}.png")


def main():
    torch.manual_seed(6)
    rng = np.random.default_rng(6)
    cells, model = Cells(rng), UNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    with tempfile.TemporaryDirectory() as tmp:
        for step in range(STEPS):
            images, truth, weight = cells.batch(rng)
            logit = model(images)
            loss = nn.functional.binary_cross_entropy_with_logits(logit, truth, weight)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            save_panels(Path(tmp), step, images, truth, logit.detach())
            if step % 22 == 21:
                print(f"step {step + 1:3d}  weighted loss {loss.item():.4f}", flush=True)
    dice = 2 * ((logit > 0) * truth).sum() / ((logit > 0).sum() + truth.sum())
    print(f"Dice of the last batch {dice.item():.3f}")


if __name__ == "__main__":
    main()
