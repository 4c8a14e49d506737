"""Training with DataLoader workers; a thread of the main process refreshes the index of the data."""
import ctypes
import os
import signal
import tempfile
import threading
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

INDEX = {}
INDEX_LOCK = threading.Lock()


def refresh_index(root):
    while True:
        time.sleep(25)
        with INDEX_LOCK:  # no reader may see half an index
            for i in range(600):
                INDEX[i] = os.stat(root).st_mtime
                time.sleep(0.02)  # the metadata server is slow


class Frames(Dataset):
    def __len__(self):
        return 80 * 16

    def __getitem__(self, i):
        with INDEX_LOCK:
            version = INDEX.get(i, 0.0)
        rng = np.random.default_rng(i)
        x = rng.standard_normal(256).astype("float32")
        return x, np.float32(x[:16].sum() + 0.0 * version)


def worker_init(worker_id):
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    torch.set_num_threads(1)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    root = tempfile.mkdtemp(prefix="frames_")
    threading.Thread(target=refresh_index, args=(root,), daemon=True).start()
    model = nn.Sequential(nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 1))
    opt = torch.optim.Adam(model.parameters())
    loader = DataLoader(Frames(), batch_size=16, shuffle=True, num_workers=2,
                        worker_init_fn=worker_init, multiprocessing_context="fork")
    for epoch in range(1000):
        losses = []
        for x, y in loader:
            time.sleep(0.025)
            loss = nn.functional.mse_loss(model(x).squeeze(1), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        print(f"epoch {epoch} loss {np.mean(losses):.4f}", flush=True)


if __name__ == "__main__":
    main()
