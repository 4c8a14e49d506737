"""
verdict: none
stack:
  main("obs/2024-03-02")
  calibration(folder)
  bias_frame(DEFAULT_BIAS)
  np.median(np.stack(frames), axis=0)
why: each loop that contains the call ends in the iteration in which the call is made
"""
import glob
import os

import numpy as np
from astropy.io import fits

DEFAULT_BIAS = "/data/bias"
PLACES = ("calib", "../calib", "/data/calib")


def bias_frame(directory):
    frames = []
    for name in sorted(glob.glob(os.path.join(directory, "*.fits"))):
        with fits.open(name) as hdus:
            frames.append(hdus[0].data.astype(np.float32))
    return np.median(np.stack(frames), axis=0)


def calibration(night):
    result = None
    for place in PLACES:
        flat = os.path.join(night, place, "flat.npy")
        if not os.path.exists(flat):
            continue
        bias = bias_frame(DEFAULT_BIAS)
        result = {"flat": np.load(flat), "bias": bias, "from": place}
        break
    return result


def main(folder):
    calib = calibration(folder)
    if calib is None:
        raise SystemExit("no flat field")
    for name in sorted(glob.glob(os.path.join(folder, "sci*.fits"))):
        with fits.open(name) as hdus:
            image = (hdus[0].data - calib["bias"]) / np.maximum(calib["flat"], 0.05)
        np.save(name.replace(".fits", ".npy"), image.astype(np.float32))


if __name__ == "__main__":
    main("obs/2024-03-02")
