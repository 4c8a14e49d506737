"""
verdict: none
stack:
  survey(SIZES)
  timing(backend, noise)
  function(data)
why: the transform is repeated on purpose, to measure its time
"""
import time

import numpy as np
import pyfftw
import scipy.fft

SIZES = (1 << 16, 1 << 18, 1 << 20, 3 * 5 * 7 * 11 * 13 * 17)
BACKENDS = {
    "numpy": np.fft.fft,
    "scipy": scipy.fft.fft,
    "fftw": pyfftw.interfaces.numpy_fft.fft,
}


def timing(function, data, repeats=200):
    durations = []
    for _ in range(repeats):
        begin = time.perf_counter()
        function(data)
        durations.append(time.perf_counter() - begin)
    return np.quantile(durations, [0.1, 0.5, 0.9])


def survey(sizes):
    rng = np.random.default_rng(0)
    rows = []
    for size in sizes:
        noise = rng.standard_normal(size) + 0j
        for name, backend in BACKENDS.items():
            rows.append((name, size, *timing(backend, noise)))
    return rows


if __name__ == "__main__":
    for name, size, low, median, high in survey(SIZES):
        print(f"{name:6s} {size:8d} {median * 1e3:8.3f} ms  [{low * 1e3:.3f}, {high * 1e3:.3f}]")
