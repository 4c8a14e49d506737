"""A small adversarial network that draws radiolarian skeletons."""
import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn

SIDE, BATCH, STEPS, NOISE = 64, 64, 70, 64


def skeletons(rng, count):
    yy, xx = np.mgrid[-1:1:SIDE * 1j, -1:1:SIDE * 1j]
    radius, angle = np.hypot(xx, yy), np.arctan2(yy, xx)
    pictures = np.empty((count, SIDE, SIDE), np.float32)
    for index in range(count):
        spines = rng.integers(4, 12)
        edge = 0.55 + 0.25 * np.cos(spines * angle + rng.uniform(0, 6))
        mesh = 0.5 + 0.5 * np.cos(rng.uniform(15, 25) * radius) * np.cos(spines * 2 * angle)
        pictures[index] = np.where(radius < edge, mesh, 0.0)
    return torch.from_numpy(pictures.reshape(count, -1)) * 2 - 1


def save_sheet(pictures, path):
    grid = pictures.view(8, 8, SIDE, SIDE).permute(0, 2, 1, 3).reshape(8 * SIDE, 8 * SIDE)
    grey = ((grid + 1) * 127.5).clamp(0, 255).byte().numpy()
    sheet = Image.fromarray(grey).resize((16 * SIDE, 16 * SIDE), Image.LANCZOS)
    sheet.save(path, optimize=True)


class Limiter:
    """Keeps the largest singular value of the weights of the critic at one."""

    def __init__(self, critic):
        self.weights = [m.weight for m in critic if isinstance(m, nn.Linear)]

    @torch.no_grad()
    def apply(self):
        for weight in self.weights:
            largest = torch.linalg.matrix_norm(weight, ord=2)
            weight.div_(largest.clamp(min=1.0))


def main():
    torch.manual_seed(40)
    pictures = skeletons(np.random.default_rng(40), 2000)
    folder = tempfile.TemporaryDirectory()
    painter = nn.Sequential(nn.Linear(NOISE, 256), nn.ReLU(), nn.Linear(256, SIDE * SIDE), nn.Tanh())
    critic = nn.Sequential(
        nn.Linear(SIDE * SIDE, 512), nn.LeakyReLU(0.2), nn.Linear(512, 256), nn.LeakyReLU(0.2), nn.Linear(256, 1)
    )
    limiter = Limiter(critic)
    paint = torch.optim.Adam(painter.parameters(), lr=5e-4, betas=(0.5, 0.9))
    judge = torch.optim.Adam(critic.parameters(), lr=5e-4, betas=(0.5, 0.9))
    fixed = torch.randn(64, NOISE)
    for step in range(STEPS):
        for _ in range(2):
            real = pictures[torch.randint(len(pictures), (BATCH,))]
            false = painter(torch.randn(BATCH, NOISE)).detach()
            gap = critic(real).mean() - critic(false).mean()
            judge.zero_grad()
            (-gap).backward()
            judge.step()
        limiter.apply()
        loss = -critic(painter(torch.randn(BATCH, NOISE))).mean()
        paint.zero_grad()
        loss.backward()
        paint.step()
        with torch.no_grad():
            save_sheet(painter(fixed), Path(folder.name) / f"sheet_{step:04d}.png")
        if step % 35 == 34:
            print(f"step {step + 1}: gap {gap.item():.4f}, painter {loss.item():.4f}")
    sheets = sorted(Path(folder.name).glob("*.png"))
    print("last sheet", sheets[-1].name, Image.open(sheets[-1]).size)
    folder.cleanup()


if __name__ == "__main__":
    main()
