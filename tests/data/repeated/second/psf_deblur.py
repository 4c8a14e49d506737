"""
verdict: same
stack:
  restore_all(args.images, Optics(sigma=args.sigma))
  wiener(frame, optics)
  airy_kernel(lens)
  math.exp(-((x - cx) ** 2 + (y - cy) ** 2) / (2 * setup.sigma ** 2))
call: airy_kernel(lens)
loop: for path in paths
why: the kernel depends only on the frozen optics settings and is computed again for each image
"""
import argparse
import math
from dataclasses import dataclass

import numpy as np
from skimage import io


@dataclass(frozen=True)
class Optics:
    sigma: float = 3.2
    size: int = 513
    noise: float = 0.01


def airy_kernel(setup):
    kernel = np.zeros((setup.size, setup.size))
    cx = cy = setup.size // 2
    for y in range(setup.size):
        for x in range(setup.size):
            kernel[y, x] = math.exp(-((x - cx) ** 2 + (y - cy) ** 2) / (2 * setup.sigma ** 2))
    return kernel / kernel.sum()


def wiener(image, lens):
    kernel = airy_kernel(lens)
    transfer = np.fft.rfft2(kernel, s=image.shape)
    spectrum = np.fft.rfft2(image)
    estimate = spectrum * transfer.conj() / (np.abs(transfer) ** 2 + lens.noise)
    return np.fft.irfft2(estimate, s=image.shape)


def restore_all(paths, optics):
    for path in paths:
        frame = io.imread(path, as_gray=True).astype(float)
        sharp = wiener(frame, optics)
        np.save(path + ".restored.npy", sharp)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("images", nargs="+")
    parser.add_argument("--sigma", type=float, default=3.2)
    args = parser.parse_args()
    restore_all(args.images, Optics(sigma=args.sigma))
