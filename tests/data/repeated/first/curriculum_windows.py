"""
verdict: none
stack:
  main(np.load("ecg.npy", mmap_mode="r"))
  scorer.update(beats)
  self.kernel
  gaussian_kde(self.reference, bw_method=1.0 / (1 + self._round))
why: the property depends on a counter that update() raises
"""
import numpy as np
from scipy.stats import gaussian_kde


class Scorer:
    def __init__(self, reference):
        self.reference = reference
        self._round = 0
        self.history = []

    @property
    def kernel(self):
        return gaussian_kde(self.reference, bw_method=1.0 / (1 + self._round))

    def update(self, windows):
        density = self.kernel(windows)
        self._round += 1
        self.history.append(float(np.log(density + 1e-300).mean()))
        return self.history[-1]


def reduce(windows):
    centred = windows - windows.mean(axis=0)
    u, s, vt = np.linalg.svd(centred, full_matrices=False)
    return (u[:, :3] * s[:3]).T


def main(ecg, width=250):
    count = len(ecg) // width
    beats = reduce(np.array(ecg[: count * width], dtype=float).reshape(count, width))
    scorer = Scorer(beats[:, ::10])
    change = np.inf
    while change > 1e-3 and len(scorer.history) < 100:
        value = scorer.update(beats)
        if len(scorer.history) > 1:
            change = abs(value - scorer.history[-2])
    return scorer.history


if __name__ == "__main__":
    print(main(np.load("ecg.npy", mmap_mode="r")))
