"""Whistlers in a long VLF record: the file is read once in blocks, two threads transform them."""
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy import fft

RATE = 48_000
BLOCK = 1 << 22
BLOCKS = 48
WIDTH = 2048
HOP = 128
FREQ = np.fft.rfftfreq(WIDTH, 1.0 / RATE)
BAND = (FREQ > 1500.0) & (FREQ < 9000.0)
WINDOW = np.hanning(WIDTH).astype(np.float32)


def record(path):
    rng = np.random.default_rng(8)
    base = rng.standard_normal(BLOCK, dtype=np.float32)
    t = np.arange(RATE) / RATE
    sweep = np.sin(2 * np.pi * (9000.0 * t - 3600.0 * t * t)).astype(np.float32) * np.exp(-3.0 * t).astype(np.float32)
    with open(path, "wb") as out:
        for number in range(BLOCKS):
            block = np.roll(base, 7919 * number)
            for start in rng.integers(0, BLOCK - RATE, size=number % 4):
                block[start:start + RATE] += 0.8 * sweep
            block.tofile(out)


def spectra(block):
    frames = np.lib.stride_tricks.sliding_window_view(block, WIDTH)[::HOP]
    level = np.empty((len(frames), int(BAND.sum())), dtype=np.float32)
    for lo in range(0, len(frames), 512):
        part = fft.rfft(frames[lo:lo + 512] * WINDOW, axis=1)
        level[lo:lo + 512] = np.abs(part[:, BAND])
    return level


def whistlers(level):
    level = np.log(level + 1e-6)
    level -= np.median(level[::8], axis=0)
    score = np.zeros(len(level), dtype=np.float32)
    bins = np.linspace(0, level.shape[1] - 1, 40).astype(int)
    for b in bins:
        lag = int((FREQ[BAND][-1] - FREQ[BAND][b]) / 7200.0 * RATE / HOP)
        score[: len(score) - lag] += level[lag:, b] if lag else level[:, b]
    score /= len(bins)
    peaks = (score[1:-1] > score[:-2]) & (score[1:-1] >= score[2:]) & (score[1:-1] > 0.45)
    return int(peaks.sum()), float(score.max())


def job(path, number):
    block = np.fromfile(path, dtype=np.float32, count=BLOCK, offset=4 * BLOCK * number)
    return whistlers(spectra(block))


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "vlf.f32")
        record(path)
        with ThreadPoolExecutor(2) as threads:
            found = list(threads.map(lambda number: job(path, number), range(BLOCKS)))
    counts = np.array([f[0] for f in found])
    best = np.array([f[1] for f in found])
    print(f"{BLOCKS * BLOCK / RATE / 60:.1f} minutes of record, {counts.sum()} candidates")
    print(f"best score {best.max():.4f} in block {int(best.argmax())}, quiet blocks {(best < best.mean()).sum()}")


if __name__ == "__main__":
    main()
