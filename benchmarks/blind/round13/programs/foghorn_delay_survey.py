"""Delays of fog-horn blasts between coastal microphones (phase-transform correlation)."""
import itertools

import numpy as np

SAMPLES = 999_983
RATE = 16000
MICROPHONES = 6
BLASTS = 10


def record(rng, delays):
    """One blast as heard at all microphones, each with its own noise."""
    quiet = 20000
    source = np.zeros(SAMPLES + 2 * quiet)
    start = 300_000
    length = 6 * RATE
    t = np.arange(length) / RATE
    horn = np.sin(2 * np.pi * 190 * t) + 0.5 * np.sin(2 * np.pi * 381 * t)
    source[start:start + length] = horn * np.sin(np.pi * t / 6.0) + rng.normal(0, 1.0, length)
    tracks = []
    for delay in delays:
        first = quiet - delay
        track = source[first:first + SAMPLES] + rng.normal(0, 0.3, SAMPLES)
        tracks.append(track)
    return tracks


def band_limits(n):
    """Bins between 80 Hz and 4 kHz."""
    return int(80 * n / RATE), int(4000 * n / RATE)


def spectra(tracks):
    n = len(tracks[0])
    return n, [np.fft.rfft(track, n) for track in tracks]


def delay_between(a, b, n):
    """Delay of track b after track a in samples."""
    low, high = band_limits(n)
    cross = np.zeros(len(a), complex)
    band = b[low:high] * np.conj(a[low:high])
    cross[low:high] = band / np.maximum(np.abs(band), 1e-12)
    correlation = np.fft.irfft(cross, n)
    lag = int(correlation.argmax())
    return lag - n if lag > n // 2 else lag


def solve(pairs, measured):
    """Least-squares delays of all microphones relative to the first."""
    design = np.zeros((len(pairs), MICROPHONES))
    for row, (i, j) in enumerate(pairs):
        design[row, i] = -1
        design[row, j] = 1
    return np.linalg.lstsq(design[:, 1:], np.array(measured, float), rcond=None)[0]


def main():
    rng = np.random.default_rng(1903)
    pairs = list(itertools.combinations(range(MICROPHONES), 2))
    errors = []
    for blast in range(BLASTS):
        delays = np.concatenate([[0], rng.integers(-9000, 9000, MICROPHONES - 1)])
        n, transformed = spectra(record(rng, delays))
        measured = [delay_between(transformed[i], transformed[j], n) for i, j in pairs]
        found = solve(pairs, measured)
        errors.append(np.abs(found - delays[1:]).max())
        if blast % 3 == 0:
            print("blast %2d: delays (ms)" % blast, np.round(found / RATE * 1000, 1))
    print("blasts:", BLASTS, "pairs per blast:", len(pairs))
    print("largest error: %.2f samples" % max(errors))


if __name__ == "__main__":
    main()
