"""Find virus in tulip bulbs on small photographs, trained on two ranks."""
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

SIDE = 64
BULBS = 768
EPOCHS = 7
MICRO = 16
ACCUMULATE = 4


def make_bulbs(seed):
    gen = torch.Generator().manual_seed(seed)
    sick = torch.randint(0, 2, (BULBS,), generator=gen)
    photos = torch.randn(BULBS, 3, SIDE, SIDE, generator=gen) * 0.5
    stripes = torch.sin(torch.arange(SIDE) * 0.9)[None, None, None, :]
    photos += 0.25 * sick[:, None, None, None] * stripes
    return photos, sick


def make_net():
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 96, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4),
        nn.Flatten(), nn.Linear(96 * 16, 2),
    )


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)
    torch.manual_seed(3)
    photos, sick = make_bulbs(11)
    net = DistributedDataParallel(make_net())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(EPOCHS):
        order = torch.randperm(BULBS, generator=torch.Generator().manual_seed(epoch))
        mine = order[rank::world]
        total = torch.zeros(1)
        for k, pick in enumerate(mine.split(MICRO)):
            last = k % ACCUMULATE == ACCUMULATE - 1
            with nullcontext() if last else net.no_sync():
                loss = nn.functional.cross_entropy(net(photos[pick]), sick[pick])
                (loss / ACCUMULATE).backward()
            total += loss.detach() * len(pick)
            if last:
                optimizer.step()
                optimizer.zero_grad()
        dist.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch}: loss {total.item() / BULBS:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
