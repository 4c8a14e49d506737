"""Background subtraction of a fluorescence movie, frame by frame."""
import os
import tempfile
import numpy as np
from scipy.ndimage import gaussian_filter


def acquire(path):
    rng = np.random.default_rng(0)
    base = rng.integers(0, 40, (210, 256, 256), dtype=np.uint16)
    base[:, 100:120, 100:120] += 200
    np.savez_compressed(path, frames=base, exposure=np.full(210, 0.02))


def main():
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "movie.npz")
        acquire(path)
        movie = np.load(path)
        n = len(movie["exposure"])
        total = np.zeros((256, 256))
        for i in range(n):
            frame = movie["frames"][i].astype(float)
            bg = gaussian_filter(frame, 15)
            total += np.clip(frame - bg, 0, None)
            if i % 20 == 0:
                print(i, total.max(), flush=True)


if __name__ == "__main__":
    main()
