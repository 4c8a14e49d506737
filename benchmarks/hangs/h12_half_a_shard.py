"""Trains over raw shards of a network file system; one of them delivers only its first half."""
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
from torch import nn

ROWS, DIM, BATCH = 960, 48, 16
# Stand-in for an NFS server which goes away while the file is read: half of the bytes, then nothing.
NFS = r"""
import ctypes, sys, time
ctypes.CDLL(None).prctl(1, 9)
f = open(sys.argv[1], "wb", buffering=0)
f.write(bytes(int(sys.argv[2])))
while True:
    time.sleep(3600)
"""


def prepare(folder, shards=24, broken=13):
    rng = np.random.default_rng(0)
    for i in range(shards):
        path = os.path.join(folder, f"part-{i:05d}.bin")
        if i == broken:
            os.mkfifo(path)
            subprocess.Popen([sys.executable, "-c", NFS, path, str(ROWS * DIM * 2)])
        else:
            rng.standard_normal((ROWS, DIM)).astype(np.float32).tofile(path)
    return shards


def load(folder, i):
    with open(os.path.join(folder, f"part-{i:05d}.bin"), "rb") as f:
        raw = f.read()
    return torch.from_numpy(np.frombuffer(raw, np.float32).reshape(ROWS, DIM).copy())


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    auto = nn.Sequential(nn.Linear(DIM, 24), nn.ReLU(), nn.Linear(24, DIM))
    opt = torch.optim.Adam(auto.parameters(), lr=1e-3)
    with tempfile.TemporaryDirectory() as folder:
        shards = prepare(folder)
        for epoch in range(50):
            for i in range(shards):
                for x in load(folder, i).split(BATCH):
                    opt.zero_grad()
                    loss = nn.functional.mse_loss(auto(x), x)
                    loss.backward()
                    opt.step()
                    time.sleep(0.03)
                print(f"epoch {epoch} shard {i} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
