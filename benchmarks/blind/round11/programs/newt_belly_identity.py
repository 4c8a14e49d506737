"""Recognition of individual crested newts by their belly pattern (triplet loss)."""
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from scipy.spatial.distance import cdist
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"

NEWTS = 250
PHOTOS = 12
QUERIES = 2
SIZE = 64
WIDTH = 128


def make_photos(seed=14):
    gen = torch.Generator(device=device).manual_seed(seed)
    coarse = torch.randn(NEWTS, 1, 10, 10, generator=gen, device=device)
    belly = (F.interpolate(coarse, size=(SIZE, SIZE), mode="bicubic") > 0.3).float()
    photos = belly.unsqueeze(1).expand(-1, PHOTOS, -1, -1, -1)
    noise = torch.randn(NEWTS, PHOTOS, 1, SIZE, SIZE, generator=gen, device=device)
    return (photos + 0.4 * noise).contiguous()


class BellyNet(nn.Module):
    def __init__(self):
        super().__init__()
        widths = [1, 32, 64, 128, 256]
        layers = []
        for a, b in zip(widths, widths[1:]):
            layers += [nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b),
                       nn.ReLU(inplace=True), nn.MaxPool2d(2)]
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(256, WIDTH)

    def forward(self, x):
        return F.normalize(self.head(self.features(x).mean((2, 3))), dim=1)


def vary(images):
    count = len(images)
    shift = torch.randint(-6, 7, (count, 2)).tolist()
    flip = (torch.rand(count) < 0.5).tolist()
    light = (0.8 + 0.4 * torch.rand(count)).tolist()
    varied = []
    for image, (dy, dx), mirrored, gain in zip(images, shift, flip, light):
        image = torch.roll(image, (dy, dx), dims=(1, 2))
        if mirrored:
            image = image.flip(2)
        varied.append(image * gain)
    return torch.stack(varied)


def triplet_step(model, optimiser, photos, newts):
    first = photos[newts, torch.randint(0, PHOTOS - QUERIES, newts.shape, device=device)]
    second = photos[newts, torch.randint(0, PHOTOS - QUERIES, newts.shape, device=device)]
    vectors = model(vary(torch.cat([first, second])))
    a, p = vectors.chunk(2)
    gap = torch.cdist(a, p)
    other = gap + 10.0 * torch.eye(len(newts), device=device)
    loss = F.relu(gap.diagonal() - other.min(1).values + 0.3).mean()
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    optimiser.step()
    return loss.detach()


@torch.no_grad()
def rank_one(model, photos):
    model.eval()
    vectors = model(photos.flatten(0, 1)).view(NEWTS, PHOTOS, WIDTH)
    model.train()
    known = vectors[:, :-QUERIES].flatten(0, 1).cpu().numpy()
    query = vectors[:, -QUERIES:].flatten(0, 1).cpu().numpy()
    nearest = cdist(query, known).argmin(1) // (PHOTOS - QUERIES)
    return float((nearest == np.repeat(np.arange(NEWTS), QUERIES)).mean())


def main():
    budget_s = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    torch.manual_seed(14)
    photos = make_photos()
    model = BellyNet().to(device)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

    start = time.perf_counter()
    steps, found = 0, 0.0
    while time.perf_counter() - start < budget_s:
        for _ in range(4):
            for newts in torch.randperm(NEWTS, device=device)[:240].split(80):
                loss = triplet_step(model, optimiser, photos, newts)
                steps += 1
        found = rank_one(model, photos)

    print(f"done: {steps} steps, loss {loss.item():.3f}, rank one {found:.3f}")


if __name__ == "__main__":
    main()
