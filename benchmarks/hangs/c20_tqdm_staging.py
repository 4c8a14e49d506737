"""Training under one tqdm bar; half way the next part of the data (3000 files) gets copied, 60 s."""
import os
import shutil
import tempfile
import time

import numpy as np
import torch
from torch import nn
from tqdm import tqdm

FILES = 3000


def make_source(folder):
    rng = np.random.default_rng(0)
    for i in range(FILES):
        with open(os.path.join(folder, f"{i:05d}.bin"), "wb") as f:
            f.write(rng.standard_normal(64 * 8).astype(np.float32).tobytes())


def stage(source, target):
    """Copy to the node-local disk; the file server allows about 50 files per second."""
    for i, name in enumerate(sorted(os.listdir(source))):
        t = time.monotonic()
        shutil.copy(os.path.join(source, name), os.path.join(target, name))
        time.sleep(max(0.0, 0.02 - (time.monotonic() - t)))


def train(model, opt, source, local, steps=1400):
    folder, names = source, sorted(os.listdir(source))[:steps]
    with tqdm(names, desc="part 1", unit="batch", mininterval=0.5) as bar:
        for i, name in enumerate(bar):
            if i == steps // 2:
                stage(source, local)
                folder = local
                bar.set_description("part 2")
            x = torch.from_numpy(np.fromfile(os.path.join(folder, name), np.float32).reshape(8, 64))
            loss = nn.functional.mse_loss(model(x), x[:, :1])
            opt.zero_grad()
            loss.backward()
            opt.step()
            time.sleep(0.035)
            bar.set_postfix(loss=f"{loss.item():.4f}")


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    with tempfile.TemporaryDirectory() as d:
        source, local = os.path.join(d, "server"), os.path.join(d, "local")
        os.mkdir(source)
        os.mkdir(local)
        make_source(source)
        train(model, opt, source, local)
    print("done")


if __name__ == "__main__":
    main()
