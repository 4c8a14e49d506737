"""Search a night's baseband recording of a solar radio telescope for short bursts, in one pass."""
import tempfile
from pathlib import Path

import numpy as np
from scipy import fft

BLOCKS = 120
FRAMES, CHANNEL_SAMPLES = 2_048, 4_096       # a block holds 2048 spectra of 4096 samples, 8 MiB
THRESHOLD = 7.0


def record(path):
    """What the digitiser leaves: int8 samples, in blocks."""
    rng = np.random.default_rng(1942)
    noise = np.clip(rng.normal(0, 18, FRAMES * CHANNEL_SAMPLES), -127, 127).astype(np.int8)
    t = np.arange(24 * CHANNEL_SAMPLES)
    chirp = (9 * np.sin(2 * np.pi * (0.11 * t + 2e-7 * t * t))).astype(np.int8)
    with open(path, "wb") as out:
        for block in range(BLOCKS):
            data = np.roll(noise, 7919 * block)
            if block % 5 == 2:
                start = (block * 31 % (FRAMES - 40)) * CHANNEL_SAMPLES
                data[start:start + len(chirp)] //= 2
                data[start:start + len(chirp)] += chirp
            out.write(data.tobytes())


def blocks(path):
    size = FRAMES * CHANNEL_SAMPLES
    with open(path, "rb") as source:
        while True:
            data = np.fromfile(source, dtype=np.int8, count=size)
            if len(data) < size:
                return
            yield data.reshape(FRAMES, CHANNEL_SAMPLES)


def dynamic_spectrum(block, tapers):
    power = 0.0
    for taper in tapers:
        spectra = fft.rfft(block * taper, axis=1, workers=2)
        power = power + spectra.real ** 2
        power += spectra.imag ** 2
    return power[:, 16:-17].reshape(FRAMES, -1, 32).mean(axis=2)


def bursts_in(power):
    """Frames in which a few channels rise above their own quiet level."""
    quiet = np.median(power, axis=0)
    scatter = 1.4826 * np.median(np.abs(power - quiet), axis=0)
    high = (power - quiet) / scatter > THRESHOLD
    frames = np.flatnonzero(high.sum(axis=1) >= 1)
    if len(frames) == 0:
        return []
    groups = np.split(frames, np.flatnonzero(np.diff(frames) > 3) + 1)
    return [(int(g[0]), int(g[-1])) for g in groups if len(g) >= 6]


def main():
    x = np.pi * np.arange(1, CHANNEL_SAMPLES + 1) / (CHANNEL_SAMPLES + 1)
    tapers = np.array([np.sin(x), np.sin(2 * x)], dtype=np.float32)
    found, level = [], []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "night.raw"
        record(path)
        for number, block in enumerate(blocks(path)):
            power = dynamic_spectrum(block, tapers)
            level.append(float(power.mean()))
            found += [(number, *burst) for burst in bursts_in(power)]
    print("blocks", len(level), "mean level %.4e" % np.mean(level))
    print("bursts", len(found), "first", found[:2])


if __name__ == "__main__":
    main()
