"""
verdict: none
stack:
  diffusion("water.xyz", every=5)
  read_frame(stream, n_atoms)
  np.loadtxt(itertools.islice(handle, count), usecols=(1, 2, 3))
why: the open file moves on with each call, which returns the next frame
"""
import itertools

import numpy as np


def read_header(handle):
    line = handle.readline()
    if not line.strip():
        return 0
    handle.readline()
    return int(line)


def read_frame(handle, count):
    return np.loadtxt(itertools.islice(handle, count), usecols=(1, 2, 3))


def diffusion(path, every):
    first, frames, msd = None, 0, []
    with open(path) as stream:
        n_atoms = read_header(stream)
        while n_atoms:
            xyz = read_frame(stream, n_atoms)
            if first is None:
                first = xyz
            if frames % every == 0:
                msd.append(((xyz - first) ** 2).sum(axis=1).mean())
            frames += 1
            if read_header(stream) != n_atoms:
                break
    slope = np.polyfit(np.arange(len(msd)) * every, msd, 1)[0]
    return slope / 6


if __name__ == "__main__":
    print(diffusion("water.xyz", every=5))
