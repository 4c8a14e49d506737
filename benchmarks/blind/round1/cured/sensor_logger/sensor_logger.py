# Simulated beam monitor: 16 channels, results appended to an hdf5 file
import os
import tempfile
import h5py
import numpy as np


def reading(k, rng):
    wave = rng.normal(size=(16, 400))
    spec = np.abs(np.fft.rfft(wave, axis=1))
    return np.concatenate([spec.mean(1), spec.std(1), wave.max(1)])


with tempfile.TemporaryDirectory() as d:
    rng = np.random.default_rng(3)
    f = h5py.File(os.path.join(d, "run042.h5"), "w")
    ds = f.create_dataset("beam", (0, 48), maxshape=(None, 48), chunks=(1024, 48))
    ts = f.create_dataset("time", (0,), maxshape=(None,), chunks=(1024,))
    for k in range(14000):
        row = reading(k, rng)
        if k % 1000 == 0:
            buf = np.zeros((1000, 48))
        buf[k % 1000] = row
        if k % 1000 == 999:
            ds.resize(k + 1, axis=0)
            ds[k - 999:k + 1] = buf
            ts.resize(k + 1, axis=0)
            ts[k - 999:k + 1] = np.arange(k - 999, k + 1) * 0.01
            f.flush()
        if k % 2000 == 0:
            print(k, "readings", flush=True)
    f.close()
