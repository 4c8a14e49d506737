"""Ranges of echoes in sonobuoy records: normalised matched filter with a chirp."""
import sys
import time

import cupy as cp
import numpy as np

RATE = 48000.0
SAMPLES = 180000
CHIRP = 6008
CHANNELS = 256
SOUND_SPEED = 1490.0


def make_chirp():
    t = cp.arange(CHIRP, dtype=cp.float32) / RATE
    length = CHIRP / RATE
    phase = 2 * np.pi * (3000.0 * t + 0.5 * (9000.0 / length) * t * t)
    taper = 0.5 - 0.5 * cp.cos(2 * np.pi * cp.arange(CHIRP, dtype=cp.float32) / (CHIRP - 1))
    return (cp.sin(phase) * taper).astype(cp.float32)


def make_records(chirp, count, seed=8):
    rng = np.random.default_rng(seed)
    records = []
    for _ in range(count):
        block = cp.random.standard_normal((CHANNELS, SAMPLES), dtype=cp.float32)
        for channel, at in enumerate(rng.integers(0, SAMPLES - CHIRP, CHANNELS).tolist()):
            block[channel, at:at + CHIRP] += 0.4 * chirp
        records.append(block)
    return records


def correlate(block, chirp):
    n = SAMPLES + CHIRP - 1
    spectrum = cp.fft.rfft(block, n, axis=1)
    template = cp.fft.rfft(chirp, n)
    spectrum *= cp.conj(template)
    return cp.fft.irfft(spectrum, n, axis=1)[:, :SAMPLES - CHIRP]


def noise_level(block):
    return cp.sqrt(cp.mean(block * block, axis=1, keepdims=True) * CHIRP)


def find_echo(block, chirp):
    match = correlate(block, chirp)
    score = cp.abs(match) / noise_level(block)
    at = cp.argmax(score, axis=1)
    best = cp.take_along_axis(score, at[:, None], axis=1)[:, 0]
    ranges = at.astype(cp.float32) / RATE * SOUND_SPEED / 2
    return ranges, best


def main():
    budget_s = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    cp.random.seed(8)
    chirp = make_chirp()
    records = make_records(chirp, 4)
    cp.cuda.Device().synchronize()

    start = time.perf_counter()
    blocks, nearest, strongest = 0, float("inf"), 0.0
    while time.perf_counter() - start < budget_s:
        ranges, best = find_echo(records[blocks % len(records)], chirp)
        nearest = min(nearest, float(ranges.min()))
        strongest = max(strongest, float(best.max()))
        blocks += 1

    print(f"done: {blocks} blocks, nearest echo {nearest:.1f} m, best score {strongest:.2f}")


if __name__ == "__main__":
    main()
