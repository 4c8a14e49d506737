"""Train a line classifier on spectra in one HDF5 file."""
import os
import tempfile
import h5py
import numpy as np
import torch

N, L = 12000, 256


def write(path):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 60, (N, L)).astype(np.float32)
    with h5py.File(path, "w") as f:
        f.create_dataset("x", data=x, chunks=(1500, L), compression="gzip", compression_opts=4)
        f["y"] = rng.integers(0, 6, N)


def main():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(L, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.ReLU(),
                              torch.nn.Linear(512, 6))
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "spectra.h5")
        write(path)
        with h5py.File(path, "r") as f:
            x, y = f["x"][:], f["y"][:]
            order = np.random.default_rng(1).permutation(N)
            for b in range(0, 1600, 32):
                pick = np.sort(order[b:b + 32])
                xb = torch.from_numpy(np.stack([x[i] for i in pick]))
                yb = torch.from_numpy(y[pick])
                for _ in range(5):
                    loss = torch.nn.functional.cross_entropy(net(xb), yb)
                    opt.zero_grad()
                    loss.backward()
                    opt.step()
                if b % 320 == 0:
                    print(b, loss.item(), flush=True)


if __name__ == "__main__":
    main()
