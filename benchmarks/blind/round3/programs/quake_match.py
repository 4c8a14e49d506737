"""Template matching of small earthquakes on the day files of a few stations."""
import multiprocessing as mp
import os
import tempfile
from functools import partial

import numpy as np
from scipy import signal

STATIONS = 7
SAMPLES = 5_000_000
TEMPLATES = 16
LENGTH = 1_200


def day_file(folder, station):
    rng = np.random.default_rng(1000 + station)
    trace = rng.standard_normal(SAMPLES, dtype=np.float32)
    path = os.path.join(folder, f"st{station:02d}.npy")
    np.save(path, trace)
    return path


def waveforms():
    rng = np.random.default_rng(7)
    t = np.arange(LENGTH) / 100.0
    out = []
    for _ in range(TEMPLATES):
        f, decay = rng.uniform(2.0, 9.0), rng.uniform(0.5, 3.0)
        wave = np.exp(-t / decay) * np.sin(2 * np.pi * f * t + rng.uniform(0, 6))
        out.append((wave / np.linalg.norm(wave)).astype(np.float32))
    return out


def plant_events(trace, shapes, station):
    rng = np.random.default_rng(500 + station)
    for shape in shapes:
        for at in rng.integers(0, SAMPLES - LENGTH, 25):
            trace[at : at + LENGTH] += 11.0 * shape
    return trace


def detections(shape, trace):
    """Count of threshold crossings of the matched filter."""
    score = signal.oaconvolve(trace, shape[::-1], mode="valid")
    spread = 1.4826 * np.median(np.abs(score))
    above = score > 8.0 * spread
    peaks, _ = signal.find_peaks(np.where(above, score, 0.0), distance=LENGTH // 2)
    return int((score[peaks] > 8.0 * spread).sum())


def prepare(path, shapes, station):
    trace = plant_events(np.load(path), shapes, station)
    sos = signal.butter(2, [1.0, 20.0], btype="bandpass", fs=100.0, output="sos")
    return signal.sosfilt(sos, trace).astype(np.float64)


def main():
    shapes = waveforms()
    context = mp.get_context("spawn")
    totals = np.zeros(TEMPLATES, dtype=int)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", ".")) as tmp:
        paths = [day_file(tmp, s) for s in range(STATIONS)]
        for station, path in enumerate(paths):
            trace = prepare(path, shapes, station)
            with context.Pool(2) as pool:
                found = pool.map(partial(detections, trace=trace), shapes, chunksize=1)
            totals += found
            print(f"station {station}: {sum(found)} detections")
    print("by template:", " ".join(str(n) for n in totals))


if __name__ == "__main__":
    main()
