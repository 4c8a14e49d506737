"""Principal components and soil regimes of a lysimeter archive that is read once."""
import tempfile
import warnings
from pathlib import Path

import numpy as np
from sklearn.mixture import GaussianMixture

warnings.filterwarnings("ignore")
HOURS, PROBES, SLAB, KEEP = 180000, 360, 6000, 12


def write_archive(path):
    """A raw float32 file, written slab by slab as the logger did."""
    rng = np.random.default_rng(91)
    modes = rng.normal(0, 1, (8, PROBES)).astype(np.float32)
    with open(path, "wb") as archive:
        for start in range(0, HOURS, SLAB):
            hour = np.arange(start, start + SLAB)
            regime = (hour // 1500) % 5
            drive = np.stack([np.sin(2 * np.pi * hour / p) for p in (24, 168, 720, 8760)])
            state = np.concatenate([drive, np.eye(4)[:, np.minimum(regime, 3)]]).astype(np.float32)
            slab = state.T @ modes
            slab += 0.5 * rng.standard_normal(slab.shape, dtype=np.float32)
            slab.tofile(archive)


def components(archive):
    """Leading components from the covariance; the archive is centred in place."""
    archive -= archive.mean(axis=0, dtype=np.float64).astype(np.float32)
    covariance = (archive.T @ archive).astype(np.float64) / (len(archive) - 1)
    variance, axes = np.linalg.eigh(covariance)
    order = np.argsort(variance)[::-1][:KEEP]
    return axes[:, order], variance[order] / variance.sum()


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lysimeter.f32"
        write_archive(path)
        archive = np.fromfile(path, dtype=np.float32).reshape(HOURS, PROBES)
    axes, share = components(archive)
    print("explained:", share[:4].round(4).tolist())
    scores = (archive @ axes.astype(np.float32)).astype(np.float64)
    del archive
    model = GaussianMixture(8, covariance_type="full", max_iter=75, tol=1e-7, random_state=0)
    regime = model.fit_predict(scores)
    sizes = np.bincount(regime, minlength=8)
    print(f"{model.n_iter_} EM rounds, log likelihood {model.lower_bound_:.4f}")
    print("hours per regime:", sorted(sizes.tolist(), reverse=True)[:4])


if __name__ == "__main__":
    main()
