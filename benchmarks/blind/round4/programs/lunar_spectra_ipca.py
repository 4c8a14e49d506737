"""Compress a cube of lunar reflectance spectra that does not fit the laptop, then group the pixels."""
import os
import tempfile

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.decomposition import IncrementalPCA

PIXELS, CHANNELS = 160_000, 500
ROWS = 4000
PARTS = 40


def write_cube(path):
    rng = np.random.default_rng(64)
    wave = np.linspace(0.4, 3.0, CHANNELS)
    bands = np.stack([np.exp(-((wave - c) / w) ** 2) for c, w in zip(np.linspace(0.6, 2.8, 12), np.linspace(0.1, 0.4, 12))])
    bands = bands.astype(np.float32)
    with open(path, "wb") as f:
        for _ in range(PIXELS // 20_000):
            soil = rng.integers(0, 5, 20_000)
            mix = rng.gamma(2.0, 0.5, (20_000, 12)).astype(np.float32)
            mix[np.arange(20_000), soil] += 6
            cube = mix @ bands
            cube += 0.05 * rng.standard_normal(cube.shape, dtype=np.float32)
            cube.tofile(f)


def strips(path):
    """Read the cube strip by strip; only one strip is in memory."""
    with open(path, "rb") as f:
        while True:
            strip = np.fromfile(f, np.float32, ROWS * CHANNELS)
            if strip.size == 0:
                return
            yield strip.reshape(-1, CHANNELS)


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "cube.f32")
        write_cube(path)

        pca = IncrementalPCA(n_components=PARTS)
        for strip in strips(path):
            pca.partial_fit(strip)
        print(f"{PARTS} components hold {pca.explained_variance_ratio_.sum():.3f} of the variance")

        # the groups need the final axes, so the cube is read once more
        groups = MiniBatchKMeans(n_clusters=5, random_state=3, n_init=3)
        sizes = np.zeros(5, int)
        for strip in strips(path):
            scores = pca.transform(strip)[:, :8]
            groups.partial_fit(scores)
            sizes += np.bincount(groups.predict(scores), minlength=5)
        print(f"{sizes.sum()} pixels, largest group holds {sizes.max() / sizes.sum():.2f}")


if __name__ == "__main__":
    main()
