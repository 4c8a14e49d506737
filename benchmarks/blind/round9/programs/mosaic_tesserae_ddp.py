"""Glass or stone? Tesserae of mosaics in two processes, started by torchrun."""
import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

SIDE, BATCH, STEPS, KINDS = 64, 48, 64, 6


def tesserae(rng, count):
    yy, xx = np.mgrid[0:SIDE, 0:SIDE] / SIDE
    kind = rng.integers(0, KINDS, count)
    angle = rng.uniform(0, np.pi, count)[:, None, None]
    grain = np.sin(2 * np.pi * (3 + kind)[:, None, None] * (xx * np.cos(angle) + yy * np.sin(angle)))
    colour = rng.uniform(-0.5, 0.5, (count, 3, 1, 1))
    picture = colour + 0.6 * grain[:, None] + rng.normal(0, 0.4, (count, 3, SIDE, SIDE))
    return torch.from_numpy(picture.astype(np.float32)), torch.from_numpy(kind)


def stage(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, 2, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
        nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
    )


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(44)
    pictures, kinds = tesserae(np.random.default_rng(44 + rank), 600)
    net = nn.Sequential(
        stage(3, 32), stage(32, 64), stage(64, 96), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(96, KINDS)
    )
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    generator = torch.Generator().manual_seed(rank)
    record = torch.zeros(3)
    for step in range(STEPS):
        rows = torch.randint(len(kinds), (BATCH,), generator=generator)
        scores = model(pictures[rows])
        loss = nn.functional.cross_entropy(scores, kinds[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        hits = (scores.detach().argmax(1) == kinds[rows]).sum()
        record += torch.stack([loss.detach(), hits.float(), torch.tensor(float(BATCH))])
        if step % 16 == 15:
            dist.all_reduce(record)
            if rank == 0:
                print(f"step {step + 1}: loss {record[0] / (16 * world):.4f}, accuracy {record[1] / record[2]:.3f}")
            record.zero_()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
