"""Calcium imaging: fluorescence traces and rigid drift from a raw two-photon movie."""
import os
import shutil
import tempfile

import h5py
import numpy as np
from scipy import ndimage

FRAMES, H, W = 256, 512, 512
CHUNK = (32, 128, 128)
CELLS = 90


def record_movie(path, rng):
    base = ndimage.gaussian_filter(rng.standard_normal((H, W)), 6)
    base = (400 + 2500 * (base - base.min()) / (base.max() - base.min())).astype(np.float32)
    labels = np.zeros((H, W), dtype=np.int32)
    for cell in range(1, CELLS + 1):
        y, x = rng.integers(12, H - 12), rng.integers(12, W - 12)
        labels[y - 6:y + 6, x - 6:x + 6] = cell
    activity = rng.gamma(1.5, 60.0, size=(FRAMES, CELLS + 1)).astype(np.float32)
    activity[:, 0] = 0
    with h5py.File(path, "w") as store:
        movie = store.create_dataset("movie", (FRAMES, H, W), dtype="uint16", chunks=CHUNK,
                                     compression="gzip", compression_opts=1, shuffle=True)
        for start in range(0, FRAMES, CHUNK[0]):
            block = 8 * rng.standard_normal((CHUNK[0], H, W), dtype=np.float32)
            block += base
            block += activity[start:start + CHUNK[0]][:, labels]
            movie[start:start + CHUNK[0]] = np.clip(block, 0, 65535).astype(np.uint16)
        store["labels"] = labels


def drift(frame, reference):
    spectrum = np.fft.rfft2(frame - frame.mean())
    cross = spectrum * np.conj(reference)
    corr = np.fft.irfft2(cross / (np.abs(cross) + 1e-6), s=frame.shape)
    dy, dx = np.unravel_index(np.argmax(corr), corr.shape)
    return (dy + H // 2) % H - H // 2, (dx + W // 2) % W - W // 2


def extract(path):
    traces = np.zeros((FRAMES, CELLS))
    shifts = np.zeros((FRAMES, 2))
    with h5py.File(path, "r") as store:
        movie = store["movie"]
        labels = store["labels"][:].ravel()
        area = np.maximum(np.bincount(labels, minlength=CELLS + 1)[1:], 1)
        first = movie[0].astype(np.float32)
        reference = np.fft.rfft2(first - first.mean())
        for t in range(FRAMES):
            frame = movie[t].astype(np.float32)
            smooth = ndimage.gaussian_filter(frame, 1.0)
            sums = np.bincount(labels, weights=smooth.ravel(), minlength=CELLS + 1)[1:]
            traces[t] = sums / area
            shifts[t] = drift(frame, reference)
    return traces, shifts


def main():
    folder = tempfile.mkdtemp(prefix="calcium_")
    try:
        path = os.path.join(folder, "session.h5")
        record_movie(path, np.random.default_rng(11))
        traces, shifts = extract(path)
        baseline = np.percentile(traces, 20, axis=0)
        dff = (traces - baseline) / np.maximum(baseline, 1)
        print("cells", traces.shape[1], "frames", traces.shape[0])
        print("mean dF/F %.4f  peak %.4f" % (dff.mean(), dff.max()))
        print("largest drift", int(np.abs(shifts).max()))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
