"""Assign bat calls to roosts with a dense network on two ranks (gloo)."""
import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

FEATURES = 128
ROOSTS = 320
CALLS = 61440
BATCH = 256
EPOCHS = 5


def make_calls(rank, world, seed=9):
    rng = np.random.default_rng(seed)
    centre = rng.standard_normal((ROOSTS, FEATURES)).astype(np.float32)
    roost = rng.integers(0, ROOSTS, CALLS)
    noise = np.random.default_rng(100 + rank)
    mine = roost[rank::world]
    x = 0.5 * centre[mine]
    x += noise.standard_normal(x.shape, dtype=np.float32)
    return torch.from_numpy(x), torch.from_numpy(mine)


def build():
    return nn.Sequential(nn.Linear(FEATURES, 512), nn.GELU(),
                         nn.Linear(512, 512), nn.GELU(),
                         nn.Linear(512, ROOSTS))


def count_hits(parts):
    hits = seen = 0
    for scores, target in parts:
        scores = np.array(scores)
        hits += int((scores.argmax(axis=1) == np.array(target)).sum())
        seen += len(target)
    return hits, seen


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x, roost = make_calls(rank, world)
    model = DistributedDataParallel(build())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loss_fn = nn.CrossEntropyLoss()
    order_rng = torch.Generator().manual_seed(rank)
    for epoch in range(EPOCHS):
        hits = seen = 0
        order = torch.randperm(len(x), generator=order_rng)
        for start in range(0, len(x), BATCH):
            rows = order[start:start + BATCH]
            scores = model(x[rows])
            loss = loss_fn(scores, roost[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            parts = [None] * world
            dist.all_gather_object(parts, (scores.tolist(), roost[rows].tolist()))
            more_hits, more_seen = count_hits(parts)
            hits += more_hits
            seen += more_seen
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f} accuracy {hits / seen:.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
