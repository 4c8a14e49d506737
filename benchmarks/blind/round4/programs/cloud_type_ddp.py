"""Cloud-type classifier on sky-camera tiles, two workers over gloo.

torchrun --standalone --nproc_per_node=2 cloud_type_ddp.py
"""
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
CLASSES, SIDE = 5, 32
EPOCHS = 5


def sky_tiles(count, seed):
    g = torch.Generator().manual_seed(seed)
    kind = torch.randint(0, CLASSES, (count,), generator=g)
    noise = torch.randn(count, 3, SIDE, SIDE, generator=g)
    smooth = noise
    tiles = torch.empty_like(noise)
    for level in range(CLASSES):
        rows = kind == level
        tiles[rows] = smooth[rows]
        smooth = F.avg_pool2d(smooth, 3, stride=1, padding=1) * 2
    return TensorDataset(tiles + 0.5 * torch.randn(tiles.shape, generator=g), kind)


def cloud_net():
    return nn.Sequential(
        nn.Conv2d(3, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(24, 48, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(48, 96, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(96, CLASSES),
    )


def shared_mean(value, count):
    both = torch.tensor([value, count], dtype=torch.float64)
    dist.all_reduce(both)
    return (both[0] / both[1]).item()


@torch.no_grad()
def evaluate(model, loader):
    right = count = 0
    for x, kind in loader:
        right += (model(x).argmax(1) == kind).sum().item()
        count += len(kind)
    return shared_mean(right, count)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(18)
    train, test = sky_tiles(3840, 1), sky_tiles(512, 2)
    deal = DistributedSampler(train, shuffle=True, seed=3)
    train_loader = DataLoader(train, batch_size=24, sampler=deal)
    test_loader = DataLoader(test, batch_size=64, sampler=DistributedSampler(test, shuffle=False))
    model = DistributedDataParallel(cloud_net())
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    for epoch in range(EPOCHS):
        deal.set_epoch(epoch)
        model.train()
        for step, (x, kind) in enumerate(train_loader):
            loss = F.cross_entropy(model(x), kind)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step % 10 == 0:
                mean = shared_mean(loss.item(), 1)
        model.eval()
        accuracy = evaluate(model.module, test_loader)
        if rank == 0:
            print(f"epoch {epoch}: last logged loss {mean:.2f}, accuracy {accuracy:.2f}", flush=True)
            torch.save(model.module.state_dict(), "cloud_net.pt")
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
