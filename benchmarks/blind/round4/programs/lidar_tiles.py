"""Find old field terraces in airborne lidar elevation tiles (two worker threads)."""
import os
import tempfile
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy import ndimage

SIDE = 1024
TILES = 30


class TileStore:
    """Packed tiles in one file; several threads may ask for tiles."""

    def __init__(self, path, index):
        self.fh = open(path, "rb")
        self.index = index
        self.lock = threading.Lock()

    def relief(self, k):
        start, size = self.index[k]
        with self.lock:
            self.fh.seek(start)
            packed = self.fh.read(size)
            raw = zlib.decompress(packed)
            dem = np.frombuffer(raw, dtype=np.int16).reshape(SIDE, SIDE) * 0.01
            hills = ndimage.gaussian_filter(dem, 48.0)
            slopes = ndimage.gaussian_filter(dem - hills, 28.0)
            fine = ndimage.gaussian_filter(dem - hills - slopes, 10.0)
        return fine, dem - hills - slopes

    def close(self):
        self.fh.close()


def write_tiles(path, rng):
    index = []
    yy, xx = np.mgrid[0:SIDE, 0:SIDE]
    with open(path, "wb") as fh:
        for _ in range(TILES):
            f = rng.uniform(0.002, 0.02, 4)
            shape = 900 * np.sin(f[0] * xx + 3 * f[1] * yy) + 120 * np.sign(np.sin(6 * f[2] * yy))
            shape += rng.integers(-60, 60, size=(SIDE, SIDE))
            packed = zlib.compress(shape.astype(np.int16).tobytes(), 1)
            index.append((fh.tell(), len(packed)))
            fh.write(packed)
    return index


def terraces(store, k):
    fine, rest = store.relief(k)
    edge = ndimage.gaussian_gradient_magnitude(fine, 4.0)
    trend = ndimage.gaussian_filter(edge, 36.0)
    strong = edge > 1.5 * trend
    share = float(strong.mean())
    contrast = float(edge[strong].mean()) if strong.any() else 0.0
    return k, share, contrast, float(rest.std())


def main():
    rng = np.random.default_rng(1848)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", ".")) as tmp:
        path = os.path.join(tmp, "tiles.bin")
        store = TileStore(path, write_tiles(path, rng))
        with ThreadPoolExecutor(max_workers=2) as pool:
            rows = list(pool.map(lambda k: terraces(store, k), range(TILES)))
        store.close()
    table = np.array([r[1:] for r in sorted(rows)])
    print("tiles", len(table))
    print("terrace share %.5f  contrast %.5f  roughness %.5f" % tuple(table.mean(axis=0)))


if __name__ == "__main__":
    main()
