"""
verdict: none
stack:
  relax(depth, inflow, 4000)
  residual(level, source)
  ndimage.convolve(surface, STENCIL, mode="nearest")
why: interior is a view of level, so the in-place addition changes the level that residual gets
"""
import numpy as np
from scipy import ndimage

STENCIL = np.array([[0.0, 1.0, 0.0], [1.0, -4.0, 1.0], [0.0, 1.0, 0.0]])


def residual(surface, forcing):
    return ndimage.convolve(surface, STENCIL, mode="nearest") + forcing


def relax(bed, source, sweeps, omega=0.2):
    level = np.zeros_like(bed)
    interior = level[1:-1, 1:-1]
    wet = bed[1:-1, 1:-1] > 0
    norms = []
    for sweep in range(sweeps):
        r = residual(level, source)
        norms.append(float(np.abs(r).max()))
        interior += omega * np.where(wet, r[1:-1, 1:-1], 0.0)
        if norms[-1] < 1e-6:
            break
    return level, norms


def main():
    depth = np.load("bathymetry.npy")
    inflow = np.zeros_like(depth)
    inflow[10, 40:60] = 1e-3
    inflow[-10, 200:210] = -2e-3
    level, norms = relax(depth, inflow, 4000)
    np.save("level.npy", level)
    print(len(norms), norms[-1])


if __name__ == "__main__":
    main()
