"""Depth of the sea floor from recorded sonar pings, matched against a bank of replicas."""
import os
import tempfile

import numpy as np
from scipy import fft

PINGS = 9_216
LENGTH = 16_384
BLOCK = 64
REPLICAS = 20


def chirp(k):
    t = np.arange(600, dtype=np.float32) / 600.0
    low, high = 20.0 + 2 * k, 90.0 + 4 * k
    return np.sin(2 * np.pi * (low * t + 0.5 * (high - low) * t * t)) * np.hanning(600)


def record(path):
    rng = np.random.default_rng(88)
    pulse = chirp(5).astype(np.float32)
    with open(path, "wb") as f:
        for start in range(0, PINGS, BLOCK):
            block = rng.standard_normal((BLOCK, LENGTH), dtype=np.float32)
            for row in range(BLOCK):
                delay = int(7000 + 3000 * np.sin((start + row) / 900.0))
                block[row, delay:delay + 600] += 0.8 * pulse
            block.tofile(f)


def bank():
    replicas = np.zeros((REPLICAS, LENGTH), dtype=np.float32)
    for k in range(REPLICAS):
        replicas[k, :600] = chirp(k)
        replicas[k] /= np.linalg.norm(replicas[k])
    return np.conj(fft.rfft(replicas, axis=1))


def match(block, filters):
    spectra = fft.rfft(block, axis=1, workers=2)
    best = np.full(len(block), -np.inf, dtype=np.float32)
    delay = np.zeros(len(block), dtype=np.int64)
    kind = np.zeros(len(block), dtype=np.int64)
    rows = np.arange(len(block))
    for k, replica in enumerate(filters):
        output = fft.irfft(spectra * replica, n=LENGTH, axis=1, workers=2, overwrite_x=True)
        peak = output.argmax(axis=1)
        value = output[rows, peak]
        better = value > best
        best[better] = value[better]
        delay[better] = peak[better]
        kind[better] = k
    return delay, kind, best


def main():
    filters = bank()
    delays, kinds, strengths = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "pings.f32")
        record(path)
        with open(path, "rb") as f:
            for _ in range(PINGS // BLOCK):
                block = np.fromfile(f, dtype=np.float32, count=BLOCK * LENGTH)
                delay, kind, best = match(block.reshape(BLOCK, LENGTH), filters)
                delays.append(delay)
                kinds.append(kind)
                strengths.append(best)
    depth = np.concatenate(delays) / 24_000.0 * 1500.0 / 2.0
    kinds = np.concatenate(kinds)
    print(f"{PINGS} pings of {LENGTH} samples")
    print(f"depth {depth.min():.2f} to {depth.max():.2f} m, replica {np.bincount(kinds).argmax()}")
    print(f"mean strength {np.concatenate(strengths).mean():.3f}")


if __name__ == "__main__":
    main()
