"""
verdict: none
stack:
  monitor(cli())
  summed_pattern(args.folder)
  h5py.File(name, "r", swmr=True)["entry/data"][-1]
why: the folder and its files are written by the detector while the program runs, each call sees newer frames
"""
import argparse
import glob
import os
import time

import h5py
import numpy as np


def cli():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--pause", type=float, default=5.0)
    parser.add_argument("--idle", type=float, default=600.0)
    return parser.parse_args()


def summed_pattern(directory):
    total = 0.0
    for name in sorted(glob.glob(os.path.join(directory, "*.h5"))):
        frame = h5py.File(name, "r", swmr=True)["entry/data"][-1]
        total = total + frame.astype(float)
    return total


def peak(pattern):
    if np.isscalar(pattern):
        return None
    return tuple(int(k) for k in np.unravel_index(pattern.argmax(), pattern.shape))


def monitor(args):
    last, seen = time.time(), None
    while time.time() - last < args.idle:
        where = peak(summed_pattern(args.folder))
        if where != seen:
            seen, last = where, time.time()
            print(time.strftime("%H:%M:%S"), where, flush=True)
        time.sleep(args.pause)
    return seen


if __name__ == "__main__":
    monitor(cli())
