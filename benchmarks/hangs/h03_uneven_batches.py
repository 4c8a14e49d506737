"""DDP where the ranks do not have the same number of batches (the last files are missing on
rank 2); at the end of the epoch the losses are summed over a metrics group. torchrun, 3 ranks."""
import ctypes
import os
import signal
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset

ctypes.CDLL(None).prctl(1, signal.SIGKILL)
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")


def make_loader(rank, batch=16):
    batches = 700 if rank == 2 else 740
    gen = torch.Generator().manual_seed(rank)
    x = torch.randn(batches * batch, 40, generator=gen)
    return DataLoader(TensorDataset(x, (x.sum(1) > 0).long()), batch_size=batch)


def train_epoch(model, loader, opt, metrics, epoch, rank):
    total = torch.zeros(2)
    for i, (x, y) in enumerate(loader):
        time.sleep(0.03)
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        total += torch.tensor([loss.item(), 1.0])
        if i % 50 == 0:
            print(f"[{rank}] epoch {epoch} batch {i}/{len(loader)} loss {loss.item():.4f}", flush=True)
    dist.all_reduce(total, group=metrics)
    return (total[0] / total[1]).item()


def main():
    torch.set_num_threads(1)
    forever = timedelta(days=7)
    dist.init_process_group("gloo", timeout=forever)
    metrics = dist.new_group(backend="gloo", timeout=forever)
    rank = dist.get_rank()
    torch.manual_seed(1)
    model = DDP(nn.Sequential(nn.Linear(40, 100), nn.ReLU(), nn.Linear(100, 2)))
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = make_loader(rank)
    for epoch in range(5):
        mean = train_epoch(model, loader, opt, metrics, epoch, rank)
        print(f"[{rank}] epoch {epoch} mean loss {mean:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
