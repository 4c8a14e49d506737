"""Find spoiled walnuts in radiographs; two ranks (gloo), median filtered images."""
import numpy as np
import torch
import torch.distributed as dist
from scipy import ndimage
from torch import nn
from torch.nn.parallel import DistributedDataParallel

SIDE = 96
BATCH = 25
EPOCHS = 3


def make_radiographs(count, seed):
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[0:SIDE, 0:SIDE] / SIDE - 0.5
    shell = (xx ** 2 + yy ** 2 < 0.16).astype(np.float32)
    spoiled = rng.integers(0, 2, count)
    images = 0.4 * rng.standard_normal((count, SIDE, SIDE), dtype=np.float32) + shell
    for i in np.flatnonzero(spoiled):
        cx, cy = rng.uniform(-0.2, 0.2, 2)
        images[i] -= 0.7 * (((xx - cx) ** 2 + (yy - cy) ** 2) < 0.01)
    return images, spoiled


def clean(images):
    out = np.empty_like(images)
    for i, image in enumerate(images):
        calm = ndimage.median_filter(image, size=5)
        out[i] = calm - ndimage.gaussian_filter(calm, 12)
    return torch.from_numpy(out).unsqueeze(1)


def build():
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, stride=2, padding=2), nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 48, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(768, 2))


def count_hits(net, images, spoiled):
    hits = 0
    with torch.no_grad():
        for start in range(0, len(images), 50):
            part = images[start:start + 50]
            views = [torch.rot90(part, k, (2, 3)) for k in range(4)]
            views += [torch.flip(view, (3,)) for view in views]
            score = sum(net(view).softmax(1) for view in views)
            hits += int((score.argmax(1) == spoiled[start:start + 50]).sum())
    return hits


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    images, spoiled = make_radiographs(3000, 1)
    x = clean(images)[rank::world]
    y = torch.from_numpy(spoiled)[rank::world]
    images, spoiled = make_radiographs(1200, 2)
    x_val, y_val = clean(images), torch.from_numpy(spoiled)
    model = DistributedDataParallel(build())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(EPOCHS):
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch))
        for start in range(0, len(x), BATCH):
            rows = order[start:start + BATCH]
            loss = loss_fn(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            hits = count_hits(model.module, x_val, y_val)
            print(f"epoch {epoch} loss {loss.item():.4f} valid {hits / 1200:.3f}")
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
