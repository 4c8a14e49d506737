"""Names woodpecker species from drumming rolls; a 1-D CNN on two ranks.

Run: torchrun --standalone --nproc_per_node=2 woodpecker_drum_ddp.py
"""
import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

ROLLS, SAMPLES, SPECIES = 2400, 2048, 6
EPOCHS, BATCH = 5, 40


def rolls(n, seed):
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, SPECIES, n)
    t = np.arange(SAMPLES, dtype=np.float32) / SAMPLES
    beats = (8 + 3 * kind + rng.normal(0, 0.8, n)).astype(np.float32)
    bend = rng.normal(0, 0.15, n).astype(np.float32)
    phase = beats[:, None] * (t + bend[:, None] * t ** 2)
    knock = np.exp(-25 * (phase % 1.0)) * np.sin(2 * np.pi * 180 * t)
    x = knock + rng.normal(0, 0.3, (n, SAMPLES))
    return torch.from_numpy(x.astype(np.float32))[:, None], torch.from_numpy(kind)


def build():
    return nn.Sequential(
        nn.Conv1d(1, 16, 9, stride=4, padding=4), nn.ReLU(),
        nn.Conv1d(16, 32, 9, stride=2, padding=4), nn.ReLU(),
        nn.Conv1d(32, 64, 9, stride=2, padding=4), nn.ReLU(),
        nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(256, SPECIES))


@torch.no_grad()
def accuracy(model, x, y, rank, world):
    tally = torch.zeros(2)
    for start in range(100 * rank, len(x), 100 * world):
        guess = model(x[start:start + 100]).argmax(1)
        tally += torch.tensor([(guess == y[start:start + 100]).sum().item(), len(guess)])
    dist.all_reduce(tally)
    return (tally[0] / tally[1]).item()


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(16)
    x, y = rolls(ROLLS, 16)
    test_x, test_y = rolls(400, 17)
    data = TensorDataset(x, y)
    sampler = DistributedSampler(data, shuffle=True, seed=3)
    loader = DataLoader(data, batch_size=BATCH, sampler=sampler)
    model = DistributedDataParallel(build())
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        total = torch.zeros(1)
        for bx, by in loader:
            loss = nn.functional.cross_entropy(model(bx), by)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.detach()
        score = accuracy(model.module, test_x, test_y, rank, world)
        if rank == 0:
            print(f"epoch {epoch}  loss {total.item() / len(loader):.4f}  "
                  f"test accuracy {score:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
