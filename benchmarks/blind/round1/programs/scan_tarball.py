"""Pick the scans on the reviewer's list out of the backup."""
import io
import os
import random
import tarfile
import tempfile
import numpy as np


def backup(path, n):
    rng = np.random.default_rng(0)
    with tarfile.open(path, "w:gz", compresslevel=3) as t:
        for i in range(n):
            raw = rng.integers(0, 50, 24_000, dtype=np.uint8).tobytes()
            info = tarfile.TarInfo(f"scan{i:04d}.raw")
            info.size = len(raw)
            t.addfile(info, io.BytesIO(raw))


with tempfile.TemporaryDirectory() as d:
    path = os.path.join(d, "backup.tgz")
    backup(path, 900)
    wanted = random.Random(1).sample(range(900), 430)
    contrast = {}
    with tarfile.open(path) as t:
        for k, i in enumerate(wanted):
            a = np.frombuffer(t.extractfile(f"scan{i:04d}.raw").read(), np.uint8)
            contrast[i] = float(a.std())
            if k % 40 == 0:
                print(k, i, contrast[i], flush=True)
    print("best", max(contrast, key=contrast.get))
