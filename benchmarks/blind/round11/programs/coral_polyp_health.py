"""Health classes of coral polyps from reef survey crops (bleached, pale, healthy, dead)."""
import math
import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.backends.cudnn.benchmark = True
BATCH = 256 if device == "cuda" else 16
SIDE = 96
MEAN = np.array([0.21, 0.38, 0.44], np.float32).reshape(1, 3, 1, 1)
STD = np.array([0.11, 0.14, 0.16], np.float32).reshape(1, 3, 1, 1)


class PolypNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        layers, c_in = [], 3
        for c_out in (width, 2 * width, 4 * width, 4 * width):
            layers += [nn.Conv2d(c_in, c_out, 3, padding=1, bias=False), nn.BatchNorm2d(c_out),
                       nn.ReLU(inplace=True),
                       nn.Conv2d(c_out, c_out, 3, stride=2, padding=1, bias=False),
                       nn.BatchNorm2d(c_out), nn.ReLU(inplace=True)]
            c_in = c_out
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(c_in, 4)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


def survey(count, rng):
    crops = rng.integers(0, 256, (count, 3, SIDE, SIDE), dtype=np.uint8)
    health = rng.integers(0, 4, count)
    return crops, health


def prepare(crops):
    x = crops.astype(np.float32) / 255.0
    x = (x - MEAN) / STD
    return torch.from_numpy(x).to(device)


def turn(x, rng):
    """Polyps have no up and down: each crop is turned and scaled at random."""
    turned = []
    for crop in x:
        angle = rng.uniform(-math.pi, math.pi)
        zoom = rng.uniform(0.8, 1.2)
        c, s = math.cos(angle) * zoom, math.sin(angle) * zoom
        theta = torch.tensor([[[c, -s, 0.0], [s, c, 0.0]]], device=x.device)
        grid = F.affine_grid(theta, (1, 3, SIDE, SIDE), align_corners=False)
        turned.append(F.grid_sample(crop[None], grid, padding_mode="reflection",
                                    align_corners=False))
    return torch.cat(turned)


def main():
    rng = np.random.default_rng(30)
    torch.manual_seed(30)
    crops, health = survey(8192 if device == "cuda" else 256, rng)
    net = PolypNet().to(device, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=device == "cuda")

    budget_s = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    begin = time.perf_counter()
    steps, total = 0, torch.zeros((), device=device)
    while time.perf_counter() - begin < budget_s:
        chosen = rng.integers(0, len(crops), BATCH)
        x = prepare(crops[chosen])
        y = torch.from_numpy(health[chosen]).to(device)
        x = turn(x, rng).contiguous(memory_format=torch.channels_last)
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = F.cross_entropy(net(x), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        total += loss.detach()
        steps += 1
    print(f"done: {steps} steps, loss {total.item() / steps:.3f}")


if __name__ == "__main__":
    main()
