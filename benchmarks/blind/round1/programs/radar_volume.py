"""Read a radar volume slab by slab (one chunk per slab) and integrate it."""
import os
import tempfile
import h5py
import numpy as np
from scipy.ndimage import median_filter

with tempfile.TemporaryDirectory() as d:
    path = os.path.join(d, "vol.h5")
    rng = np.random.default_rng(0)
    with h5py.File(path, "w") as f:
        v = f.create_dataset("dbz", (60, 400, 400), "f4", chunks=(1, 400, 400), compression="gzip", compression_opts=1)
        for k in range(60):
            v[k] = np.round(rng.gamma(2, 8, (400, 400)), 1)
    total = np.zeros((400, 400))
    with h5py.File(path, "r") as f:
        for k in range(60):
            slab = f["dbz"][k]
            clean = median_filter(slab, 5)
            total += 10 ** (clean / 16)
            if k % 10 == 0:
                print(k, total.max(), flush=True)
