"""Next frame prediction for drifting sand dunes, data parallel over two processes."""
import os
import shutil
import tempfile

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

FRAMES, SIDE = 700, 48


def simulate(path):
    rng = np.random.default_rng(27)
    kx = np.fft.fftfreq(SIDE)[None, :]
    ky = np.fft.fftfreq(SIDE)[:, None]
    spec = np.exp(-((np.hypot(kx, ky) - 0.08) / 0.03) ** 2)
    state = np.fft.fft2(rng.normal(size=(SIDE, SIDE))) * spec
    shift = np.exp(-2j * np.pi * (0.7 * kx + 0.3 * ky))
    frames = np.empty((FRAMES, SIDE, SIDE), np.float32)
    for t in range(FRAMES):
        fresh = np.fft.fft2(rng.normal(size=(SIDE, SIDE))) * spec
        state = 0.97 * state * shift + 0.24 * fresh
        frames[t] = np.fft.ifft2(state).real
    np.save(path, frames / frames.std())


class Pairs(Dataset):
    def __init__(self, path, lo, hi):
        self.frames = np.load(path, mmap_mode="r")
        self.lo, self.hi = lo, hi

    def __len__(self):
        return self.hi - self.lo - 2

    def __getitem__(self, i):
        clip = torch.from_numpy(np.array(self.frames[self.lo + i:self.lo + i + 3]))
        return clip[:2], clip[2:]


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)
    where = [tempfile.mkdtemp(prefix="dunes_") if rank == 0 else None]
    if rank == 0:
        simulate(os.path.join(where[0], "frames.npy"))
    dist.broadcast_object_list(where)
    path = os.path.join(where[0], "frames.npy")
    train = Pairs(path, 0, 640)
    held = Pairs(path, 640, FRAMES)
    sampler = DistributedSampler(train, world, rank, shuffle=True, seed=9)
    loader = DataLoader(train, batch_size=16, sampler=sampler)
    torch.manual_seed(1)
    net = DDP(nn.Sequential(nn.Conv2d(2, 32, 5, padding=2), nn.ReLU(), nn.Conv2d(32, 48, 3, padding=1), nn.ReLU(),
                            nn.Conv2d(48, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 1, 3, padding=1)))
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    for epoch in range(4):
        sampler.set_epoch(epoch)
        for past, nxt in loader:
            loss = nn.functional.mse_loss(net(past), nxt)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if rank == 0:
            with torch.no_grad():
                err = [nn.functional.mse_loss(net.module(p), n).item() for p, n in DataLoader(held, batch_size=29)]
            print(f"epoch {epoch} held out error {np.mean(err):.4f}", flush=True)
        dist.barrier()
    if rank == 0:
        shutil.rmtree(where[0])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
