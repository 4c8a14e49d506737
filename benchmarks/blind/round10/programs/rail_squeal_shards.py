"""Wheel squeal in railway curves: one process makes spectrogram shards, one trains on them."""
import multiprocessing as mp
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn

SHARDS, CLIPS, SAMPLES = 16, 200, 16000
PASSES, BATCH = 4, 40


def make_shard(number):
    rng = np.random.default_rng(1000 + number)
    squeal = rng.integers(0, 2, CLIPS)
    t = np.arange(SAMPLES, dtype=np.float32) / 16000
    sound = rng.standard_normal((CLIPS, SAMPLES), dtype=np.float32)
    pitch = rng.uniform(1500, 5500, CLIPS).astype(np.float32)
    sound += (0.5 * squeal[:, None] * np.sin(2 * np.pi * pitch[:, None] * t)).astype(np.float32)
    frames = np.lib.stride_tricks.sliding_window_view(sound, 512, axis=1)[:, ::256]
    power = np.abs(np.fft.rfft(frames * np.hanning(512).astype(np.float32), axis=2))[:, :, :256]
    bands = power.reshape(CLIPS, -1, 32, 8).mean(3)
    return np.log1p(bands).astype(np.float32), squeal


def produce(folder):
    slot = os.path.join(folder, "next_shard.npz")
    for number in range(SHARDS):
        while os.path.exists(slot):
            time.sleep(0.5)
        x, y = make_shard(number)
        part = os.path.join(folder, "part.npz")
        np.savez(part, x=x, y=y)
        os.rename(part, slot)


def shards(folder):
    slot = os.path.join(folder, "next_shard.npz")
    for _ in range(SHARDS):
        while not os.path.exists(slot):
            time.sleep(1.0)
        with np.load(slot) as data:
            x, y = data["x"], data["y"]
        os.remove(slot)
        yield torch.from_numpy(x)[:, None], torch.from_numpy(y)


def main():
    torch.manual_seed(9)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveMaxPool2d(2),
        nn.Flatten(), nn.Linear(128, 2))
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    with tempfile.TemporaryDirectory() as folder:
        maker = mp.Process(target=produce, args=(folder,))
        maker.start()
        for number, (x, y) in enumerate(shards(folder)):
            x = x - 2.5
            with torch.no_grad():
                before = (model(x).argmax(1) == y).float().mean().item()
            for _ in range(PASSES):
                for pick in torch.randperm(CLIPS).split(BATCH):
                    loss = nn.functional.cross_entropy(model(x[pick]), y[pick])
                    opt.zero_grad()
                    loss.backward()
                    opt.step()
            if number % 4 == 3:
                print(f"shard {number + 1:3d}  accuracy before training {before:.3f}")
        maker.join()


if __name__ == "__main__":
    main()
