"""Small CNN with two DataLoader workers; one worker gets stopped in the middle of the epoch."""
import ctypes
import os
import signal
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Digits(Dataset):
    def __len__(self):
        return 400_000

    def __getitem__(self, i):
        if i == 10_400:
            os.kill(os.getpid(), signal.SIGSTOP)  # a job control signal of the batch system
        rng = np.random.default_rng(i)
        label = int(i % 10)
        img = rng.random((1, 20, 20), dtype=np.float32)
        img[0, label * 2] += 1.0
        return img, label


def init_worker(_):
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # do not outlive the trainer
    torch.set_num_threads(1)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                        nn.Linear(8 * 9 * 9, 10))
    opt = torch.optim.SGD(net.parameters(), lr=0.05)
    loader = DataLoader(Digits(), batch_size=16, num_workers=2, worker_init_fn=init_worker)
    t0 = time.time()
    for step, (img, label) in enumerate(loader, 1):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(img), label)
        loss.backward()
        opt.step()
        time.sleep(0.03)  # sends the images to the dashboard
        if step % 40 == 0:
            print(f"{time.time() - t0:6.1f} s  step {step}  loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
