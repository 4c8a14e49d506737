"""Echo pings of a krill survey: clean each ping, find swarms, keep them in the cruise file."""
import os
import tempfile

import h5py
import numpy as np

PINGS = 30000
BINS = 400
DEPTH = np.linspace(5.0, 205.0, BINS, dtype=np.float32)
KERNEL = np.hanning(9).astype(np.float32)
KERNEL /= KERNEL.sum()


def pings(rng):
    """The echo sounder: blocks of raw backscatter, one row per ping."""
    block = 500
    for first in range(0, PINGS, block):
        raw = rng.normal(-78.0, 2.5, (block, BINS)).astype(np.float32)
        centre = 60 + 30 * np.sin(first / 3000.0)
        raw += 14.0 * np.exp(-((DEPTH - centre) / 6.0) ** 2)
        for row in range(block):
            yield (first + row) * 0.8, raw[row]


class CruiseFile:
    """Resizable datasets, one row per ping."""

    def __init__(self, path):
        self.file = h5py.File(path, "w")
        self.sv = self.file.create_dataset(
            "sv", (0, BINS), maxshape=(None, BINS), dtype="f4", chunks=(256, BINS))
        self.seconds = self.file.create_dataset(
            "seconds", (0,), maxshape=(None,), dtype="f8", chunks=(4096,))
        self.depth = self.file.create_dataset(
            "swarm_depth", (0,), maxshape=(None,), dtype="f4", chunks=(4096,))
        self.rows = 0

    def append(self, seconds, sv, depth):
        n = self.rows + 1
        self.sv.resize(n, axis=0)
        self.sv[n - 1] = sv
        self.seconds.resize(n, axis=0)
        self.seconds[n - 1] = seconds
        self.depth.resize(n, axis=0)
        self.depth[n - 1] = depth
        self.rows = n

    def close(self):
        self.file.attrs["pings"] = self.rows
        self.file.close()


def clean(raw):
    noise = np.median(raw[-120:])
    smooth = np.convolve(raw - noise, KERNEL, mode="same")
    return np.maximum(smooth, 0.0).astype(np.float32)


def swarm_depth(sv):
    strong = sv > 6.0
    if not strong.any():
        return np.nan
    weight = np.where(strong, sv, 0.0)
    return float((weight * DEPTH).sum() / weight.sum())


def main():
    rng = np.random.default_rng(41)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "cruise.h5")
        cruise = CruiseFile(path)
        for seconds, raw in pings(rng):
            sv = clean(raw)
            cruise.append(seconds, sv, swarm_depth(sv))
        cruise.close()
        with h5py.File(path, "r") as stored:
            depth = stored["swarm_depth"][:]
            print("pings stored:", stored.attrs["pings"], stored["sv"].shape)
            print("mean swarm depth: %.2f m" % np.nanmean(depth))
            print("range of swarm depth: %.1f - %.1f m" % (np.nanmin(depth), np.nanmax(depth)))
            print("survey time: %.1f h" % (stored["seconds"][-1] / 3600))


if __name__ == "__main__":
    main()
