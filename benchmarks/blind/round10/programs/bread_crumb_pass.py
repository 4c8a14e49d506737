"""One pass over photographs of bread slices: crumb openness from JPEG files."""
import os
import tempfile

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

SLICES, SIZE, CROP, BATCH = 1600, 256, 112, 32


def photograph(folder, seed):
    rng = np.random.default_rng(seed)
    texture = rng.normal(0, 14, (1200, 1200, 3)).astype(np.float32)
    yy, xx = np.mgrid[0:40, 0:40]
    openness = rng.uniform(0.05, 0.6, SLICES).astype(np.float32)
    for i in range(SLICES):
        r, c = rng.integers(0, 1200 - SIZE, 2)
        image = 185 + texture[r:r + SIZE, c:c + SIZE]
        for _ in range(int(40 * openness[i])):
            y, x = rng.integers(0, SIZE - 40, 2)
            hole = (xx - 20) ** 2 + (yy - 20) ** 2 < rng.uniform(4, 18) ** 2
            image[y:y + 40, x:x + 40] -= 60 * hole[:, :, None]
        picture = Image.fromarray(image.clip(0, 255).astype(np.uint8))
        picture.save(os.path.join(folder, f"slice_{i:05d}.jpg"), quality=88)
    return openness


class Slices(Dataset):
    def __init__(self, folder, openness):
        self.files = [os.path.join(folder, f"slice_{i:05d}.jpg") for i in range(SLICES)]
        self.openness = openness

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        with Image.open(self.files[i]) as picture:
            picture = picture.convert("RGB").resize((144, 144), Image.Resampling.BILINEAR)
        r, c = (i * 7) % 32, (i * 13) % 32
        crop = np.asarray(picture)[r:r + CROP, c:c + CROP]
        return torch.from_numpy(crop.copy()).permute(2, 0, 1), self.openness[i]


def build():
    return nn.Sequential(
        nn.Conv2d(3, 24, 3, stride=2, padding=1), nn.ReLU(),
        nn.Conv2d(24, 48, 3, stride=2, padding=1), nn.ReLU(),
        nn.Conv2d(48, 96, 3, stride=2, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(96, 1))


def main():
    torch.manual_seed(25)
    with tempfile.TemporaryDirectory() as folder:
        openness = photograph(folder, 25)
        data = Slices(folder, openness)
        loader = DataLoader(data, batch_size=BATCH, shuffle=True, num_workers=2,
                            prefetch_factor=4, generator=torch.Generator().manual_seed(26))
        model = build()
        opt = torch.optim.Adam(model.parameters(), lr=3e-3)
        running = []
        for step, (x, y) in enumerate(loader, start=1):
            guess = model((x.float() - 170.0) / 40.0).squeeze(1)
            loss = nn.functional.mse_loss(guess, y.float())
            opt.zero_grad()
            loss.backward()
            opt.step()
            running.append(loss.item())
            if step % 20 == 0:
                print(f"batch {step}  mean square error {np.mean(running[-20:]):.4f}")
        print(f"slices {len(data)}, mean openness {openness.mean():.3f}")


if __name__ == "__main__":
    main()
