"""DDP training; every rank reads its own staged shards. Start with torchrun, 3 ranks."""
import ctypes
import os
import signal
import tempfile
import time
from datetime import timedelta

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

SHARDS, PER_SHARD, BATCH, DIM = 20, 60, 32, 64


def stage_in(folder, rank):
    rng = np.random.default_rng(rank)
    for i in range(SHARDS):
        path = os.path.join(folder, f"shard_{i:03d}.npy")
        if rank == 1 and i == 11:
            os.mkfifo(path)  # a transfer that is streamed in and never comes
        else:
            np.save(path, rng.standard_normal((PER_SHARD * BATCH, DIM + 1)).astype("float32"))


def read_shard(folder, i):
    data = np.load(os.path.join(folder, f"shard_{i:03d}.npy"))
    return torch.from_numpy(data[:, :DIM].copy()), torch.from_numpy(data[:, DIM:].copy())


def main():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # go when torchrun goes
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(days=7))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(DIM, 128), nn.ReLU(), nn.Linear(128, 1)))
    opt = torch.optim.SGD(model.parameters(), lr=1e-3)
    with tempfile.TemporaryDirectory() as folder:
        stage_in(folder, rank)
        step = 0
        for epoch in range(10):
            for shard in range(SHARDS):
                xs, ys = read_shard(folder, shard)
                for x, y in zip(xs.split(BATCH), ys.split(BATCH)):
                    time.sleep(0.025)  # augmentation service
                    opt.zero_grad()
                    loss = nn.functional.mse_loss(model(x), y)
                    loss.backward()
                    opt.step()
                    step += 1
                    if rank == 0 and step % 50 == 0:
                        print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
