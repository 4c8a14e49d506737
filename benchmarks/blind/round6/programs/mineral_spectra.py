"""Compare Raman spectra of minerals that are kept in an LMDB library."""
import os
import shutil
import tempfile

import lmdb
import numpy as np

SPECTRA, CHANNELS = 12_000, 1024
PAIRS = 60_000


class Library:
    def __init__(self, path):
        self.path = path

    def fill(self):
        rng = np.random.default_rng(2)
        axis = np.linspace(0, 1, CHANNELS, dtype=np.float32)
        lines = np.exp(-((axis - rng.random((60, 1), dtype=np.float32)) / 0.008) ** 2)
        env = lmdb.open(self.path, map_size=1 << 28)
        with env.begin(write=True) as txn:
            for start in range(0, SPECTRA, 1000):
                mix = rng.random((1000, 60), dtype=np.float32)
                mix[mix < 0.85] = 0
                block = mix @ lines + 0.02 * rng.standard_normal((1000, CHANNELS), dtype=np.float32)
                for k in range(1000):
                    txn.put(b"%08d" % (start + k), block[k].tobytes())
        env.close()

    def spectrum(self, number):
        env = lmdb.open(self.path, map_size=1 << 28, readonly=True)
        with env.begin() as txn:
            values = np.frombuffer(txn.get(b"%08d" % number), dtype=np.float32)
        env.close()
        return values


def normalise(values):
    slope = (values[-1] - values[0]) / (CHANNELS - 1)
    flat = values - values[0] - slope * np.arange(CHANNELS, dtype=np.float32)
    return flat / np.sqrt(flat @ flat)


def similarity(a, b):
    plain = float(a @ b)
    shifted = max(float(a[3:] @ b[:-3]), float(a[:-3] @ b[3:]))
    peaks_a = (a[1:-1] > a[:-2]) & (a[1:-1] > a[2:]) & (a[1:-1] > 0.08)
    peaks_b = (b[1:-1] > b[:-2]) & (b[1:-1] > b[2:]) & (b[1:-1] > 0.08)
    shared = np.count_nonzero(peaks_a & peaks_b)
    return max(plain, shifted), shared


def main():
    folder = tempfile.mkdtemp(prefix="raman_")
    try:
        library = Library(os.path.join(folder, "spectra.lmdb"))
        library.fill()
        pairs = np.random.default_rng(3).integers(0, SPECTRA, size=(PAIRS, 2))
        best, total, shared = (0.0, None), 0.0, 0
        for i, j in pairs.tolist():
            score, common = similarity(normalise(library.spectrum(i)), normalise(library.spectrum(j)))
            total += score
            shared += common
            if i != j and score > best[0]:
                best = (score, (i, j))
        print("pairs", PAIRS, "mean similarity %.5f" % (total / PAIRS))
        print("shared peaks", shared)
        print("closest pair", best[1], "%.4f" % best[0])
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
