"""Meteor echoes in one night of a forward-scatter radio receiver.

The night is one raw file of 16-bit samples; it is read once from start to end
and every stretch is turned into a fine spectrogram.
"""
import os
import tempfile

import numpy as np
from scipy import fft

RATE = 24000
STRETCH = 1 << 20
STRETCHES = 220
FRAME = 1024
HOP = 64


def write_night(path):
    rng = np.random.default_rng(13)
    noise = (300 * rng.standard_normal(STRETCH + 400_000, dtype=np.float32)).astype(np.int16)
    with open(path, "wb") as out:
        for number in range(STRETCHES):
            start = int(rng.integers(0, 400_000))
            part = noise[start:start + STRETCH].copy()
            for _ in range(int(rng.poisson(2.0))):
                place = int(rng.integers(0, STRETCH - 12000))
                t = np.arange(12000, dtype=np.float32) / RATE
                echo = 500 * np.exp(-6 * t) * np.sin(2 * np.pi * (1000 + rng.uniform(-60, 60)) * t)
                part[place:place + 12000] += echo.astype(np.int16)
            out.write(part.tobytes())


def band_power(samples, window, low, high):
    frames = np.lib.stride_tricks.sliding_window_view(samples, FRAME)[::HOP]
    out = np.empty(len(frames), dtype=np.float32)
    for first in range(0, len(frames), 2048):
        part = frames[first:first + 2048] * window
        spectrum = fft.rfft(part, axis=1, workers=2, overwrite_x=True)[:, low:high]
        power = spectrum.real ** 2 + spectrum.imag ** 2
        out[first:first + len(power)] = power.max(axis=1) / (power.mean(axis=1) + 1.0)
    return out


def echoes(score, level):
    above = score > level
    edges = np.flatnonzero(np.diff(above.astype(np.int8)))
    starts, ends = edges[0::2], edges[1::2]
    count = min(len(starts), len(ends))
    lengths = np.abs(ends[:count] - starts[:count]) * HOP / RATE
    return lengths[lengths > 0.05]


def main():
    window = np.hanning(FRAME).astype(np.float32)
    low, high = int(300 * FRAME / RATE), int(11000 * FRAME / RATE) + 1
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "night.raw")
        write_night(path)
        with open(path, "rb") as night:
            for number in range(STRETCHES):
                raw = np.fromfile(night, dtype=np.int16, count=STRETCH)
                score = band_power(raw.astype(np.float32), window, low, high)
                found.append(echoes(score, 16.0))
    lengths = np.concatenate(found)
    print(f"{STRETCHES * STRETCH / RATE / 3600:.2f} hours, {len(lengths)} echoes")
    if len(lengths):
        print(f"mean length {lengths.mean():.3f} s, longest {lengths.max():.3f} s")


if __name__ == "__main__":
    main()
