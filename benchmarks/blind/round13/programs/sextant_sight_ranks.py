"""Estimate the altitude error of sextant sights from the wobble of the horizon (two ranks)."""
import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

FEATURES = 6
BATCH = 32
EPOCHS = 14


def make_sights(count, seed):
    rng = np.random.default_rng(seed)
    lengths = np.clip(rng.lognormal(3.9, 0.75, count), 8, 240).astype(int)
    series, targets = [], []
    for length in lengths:
        wobble = np.cumsum(rng.normal(0, 0.1, (length, FEATURES)), axis=0)
        targets.append(wobble[:, 0].mean() - 0.5 * wobble[:, 1].std())
        series.append(torch.from_numpy(wobble.astype(np.float32)))
    return series, torch.tensor(targets, dtype=torch.float32)


def make_batches(series):
    order = sorted(range(len(series)), key=lambda i: len(series[i]))
    batches = [order[i:i + BATCH] for i in range(0, len(order), BATCH)]
    return batches[: len(batches) // 2 * 2]


class SightNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(FEATURES, 96, batch_first=True)
        self.head = nn.Sequential(nn.Linear(96, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        states, _ = self.rnn(x)
        return self.head(states.mean(1)).squeeze(-1)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)
    torch.manual_seed(6)
    series, targets = make_sights(2560, 11)
    batches = make_batches(series)
    share = len(batches) // world
    mine = batches[rank * share:(rank + 1) * share]
    net = DistributedDataParallel(SightNet())
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(EPOCHS):
        shuffle = np.random.default_rng(epoch).permutation(len(mine))
        total = torch.zeros(1)
        for k in shuffle:
            batch = mine[k]
            x = nn.utils.rnn.pad_sequence([series[i] for i in batch], batch_first=True)
            loss = nn.functional.mse_loss(net(x), targets[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch}: loss {total.item() / len(batches):.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
