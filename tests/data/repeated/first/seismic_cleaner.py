"""
verdict: same
stack:
  run(sorted(Path("day").glob("*.npy")))
  cleaner.process(trace)
  self.taps()
  signal.remez(self.order, self.edges, [0, 1, 0], fs=self.fs)
call: self.taps()
loop: for path in paths
why: order, band edges and sampling rate of the cleaner are never changed, so the same filter is designed for each trace
"""
from pathlib import Path

import numpy as np
from scipy import signal


class Cleaner:
    def __init__(self, low, high, fs, order=1201):
        self.fs = fs
        self.order = order
        self.edges = [0, 0.7 * low, low, high, 1.2 * high, fs / 2]
        self.processed = 0
        self.clipped = []

    def taps(self):
        h = signal.remez(self.order, self.edges, [0, 1, 0], fs=self.fs)
        return h * np.hanning(self.order)

    def process(self, x):
        x = x - np.median(x)
        limit = 20 * np.median(np.abs(x))
        self.clipped.append(int((np.abs(x) > limit).sum()))
        x = np.clip(x, -limit, limit)
        self.processed += 1
        return signal.fftconvolve(x, self.taps(), mode="same")


def run(paths):
    cleaner = Cleaner(low=1.0, high=12.0, fs=100.0)
    energy = {}
    for path in paths:
        trace = np.load(path).astype(float)
        energy[path.stem] = float(np.sum(cleaner.process(trace) ** 2))
    print(cleaner.processed, sum(cleaner.clipped))
    return energy


if __name__ == "__main__":
    print(run(sorted(Path("day").glob("*.npy"))))
