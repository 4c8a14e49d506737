"""Grade yak wool from fibre cross-sections on two ranks (gloo)."""
import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

SIDE = 32
GRADES = 6
PER_RANK = 960
BATCH = 32
EPOCHS = 10


def sections(rng, count):
    grade = rng.integers(0, GRADES, size=count)
    yy, xx = np.mgrid[0:SIDE, 0:SIDE] / SIDE - 0.5
    radius = 0.14 + 0.04 * grade + rng.normal(0, 0.01, size=count)
    squash = rng.uniform(0.8, 1.25, size=count)
    far = np.sqrt((xx[None] * squash[:, None, None]) ** 2 + (yy[None] / squash[:, None, None]) ** 2)
    x = np.tanh((radius[:, None, None] - far) * 20) + rng.normal(0, 0.8, size=far.shape)
    return torch.from_numpy(x[:, None].astype(np.float32)), torch.from_numpy(grade)


def network():
    return nn.Sequential(
        nn.Conv2d(1, 24, 3, padding=1), nn.ReLU(),
        nn.Conv2d(24, 32, 3, stride=2, padding=1), nn.ReLU(),
        nn.Conv2d(32, 48, 3, padding=1), nn.ReLU(),
        nn.Conv2d(48, 64, 3, stride=2, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(1024, 64), nn.ReLU(), nn.Linear(64, GRADES),
    )


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(58)
    x, grade = sections(np.random.default_rng(580 + rank), PER_RANK)
    held_x, held_grade = sections(np.random.default_rng(590 + rank), 320)
    net = DistributedDataParallel(network())
    opt = torch.optim.Adam(net.parameters(), 1.5e-3)
    for epoch in range(EPOCHS):
        order = torch.randperm(PER_RANK, generator=torch.Generator().manual_seed(epoch))
        tally = torch.zeros(4)
        net.train()
        for start in range(0, PER_RANK, BATCH):
            pick = order[start:start + BATCH]
            loss = nn.functional.cross_entropy(net(x[pick]), grade[pick])
            opt.zero_grad()
            loss.backward()
            opt.step()
            tally[:2] += torch.tensor([loss.item(), 1.0])
        net.eval()
        with torch.no_grad():
            guess = net.module(held_x).argmax(1)
        tally[2:] = torch.tensor([float((guess == held_grade).sum()), float(len(guess))])
        dist.all_reduce(tally)
        if rank == 0:
            print(f"epoch {epoch} loss {tally[0] / tally[1]:.4f} right {tally[2] / tally[3]:.3f}",
                  flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
