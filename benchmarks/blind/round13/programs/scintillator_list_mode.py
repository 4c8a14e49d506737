"""Calibrated spectra and coincidences from a large list-mode file of a scintillator array."""
import multiprocessing as mp
import os
import tempfile

import numpy as np

CHANNELS = 64
BLOCK = 8_000_000
BLOCKS = 60
ENERGIES = 4096
KEV = 3000
CHUNK = 1_000_000


def write_file(path):
    """Word: 12 bits energy, 6 bits channel (2 reserved), 12 bits time since the event before."""
    rng = np.random.default_rng(137)
    channel = rng.integers(0, CHANNELS, BLOCK, dtype=np.uint32)
    energy = rng.integers(0, ENERGIES, BLOCK, dtype=np.uint32)
    line = rng.random(BLOCK, dtype=np.float32) < 0.3
    energy[line] = 1300 + (energy[line] & 63) + channel[line]
    gap = rng.integers(0, 4096, BLOCK, dtype=np.uint32)
    words = (gap << 20) | (channel << 12) | energy
    with open(path, "wb") as file:
        for k in range(BLOCKS):
            (words ^ np.uint32(k)).tofile(file)


def analyse(job):
    """One stretch of the file, read from front to back; every word is needed once."""
    path, first, words = job
    rng = np.random.default_rng(662)
    gain = (0.5 + 0.02 * rng.random(CHANNELS)).astype(np.float32)
    offset = rng.normal(5, 2, CHANNELS).astype(np.float32)
    close_pairs = np.zeros((CHANNELS, CHANNELS), np.int64)
    total = np.zeros(KEV, np.int64)
    sum_energy = np.zeros(CHANNELS)
    count = np.zeros(CHANNELS, np.int64)
    ticks = 0
    with open(path, "rb") as file:
        file.seek(4 * first)
        for _ in range(words // CHUNK):
            block = np.fromfile(file, np.uint32, CHUNK)
            channel = ((block >> 12) & 0xFF).astype(np.intp)
            gap = block >> 20
            energy = (block & 0xFFF).astype(np.float32) * gain[channel] + offset[channel]
            np.clip(energy, 0, KEV - 1, out=energy)
            total += np.bincount(energy.astype(np.intp), minlength=KEV)
            sum_energy += np.bincount(channel, weights=energy, minlength=CHANNELS)
            count += np.bincount(channel, minlength=CHANNELS)
            near = np.flatnonzero(gap[1:] < 40) + 1
            pair = channel[near] * CHANNELS + channel[near - 1]
            close_pairs += np.bincount(pair, minlength=CHANNELS ** 2).reshape(CHANNELS, CHANNELS)
            ticks += int(gap.sum(dtype=np.int64))
    return total, sum_energy, count, close_pairs, ticks


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.lst")
        write_file(path)
        print("file: %.2f GB" % (os.path.getsize(path) / 1e9))
        stretch = 3 * BLOCK
        jobs = [(path, first, stretch) for first in range(0, BLOCKS * BLOCK, stretch)]
        with mp.Pool(2) as pool:
            parts = pool.map(analyse, jobs, chunksize=1)
    total, sum_energy, count, close_pairs, ticks = (sum(column) for column in zip(*parts))
    mean = sum_energy / count
    print("events: %d in %.1f s" % (count.sum(), ticks * 1e-9))
    print("peak near %d keV" % (total[500:1000].argmax() + 500))
    print("mean energy by channel: %.1f - %.1f keV" % (mean.min(), mean.max()))
    print("coincidences: %d, in the same channel: %d" % (close_pairs.sum(), np.trace(close_pairs)))


if __name__ == "__main__":
    main()
