"""
verdict: set
stack:
  sweep(sorted(Path("sessions").glob("*.h5")))
  whitened(session)
  np.linalg.svd(np.cov(traces))
call: whitened(session)
loop: for level in THRESHOLDS
why: reading and whitening a session does not depend on the threshold, and each threshold goes through all the sessions
"""
from pathlib import Path

import h5py
import numpy as np

THRESHOLDS = (3.0, 3.5, 4.0, 4.5, 5.0, 6.0)


def whitened(path):
    with h5py.File(path, "r") as f:
        traces = f["raw"][:].astype(np.float32)
    traces -= traces.mean(axis=1, keepdims=True)
    U, s, _ = np.linalg.svd(np.cov(traces))
    return (U / np.sqrt(s + 1e-6)) @ U.T @ traces


def count_spikes(data, threshold):
    noise = np.median(np.abs(data), axis=1, keepdims=True) / 0.6745
    below = data < -threshold * noise
    return int((below[:, 1:] & ~below[:, :-1]).sum())


def sweep(sessions):
    table = {}
    for level in THRESHOLDS:
        counts = []
        for session in sessions:
            data = whitened(session)
            counts.append(count_spikes(data, level))
        table[level] = counts
    return table


if __name__ == "__main__":
    table = sweep(sorted(Path("sessions").glob("*.h5")))
    for level, counts in table.items():
        print(level, np.mean(counts), np.std(counts))
