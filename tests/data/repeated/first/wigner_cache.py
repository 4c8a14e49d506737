"""
verdict: none
stack:
  power("shells.npz", Rotations())
  rotations.matrix(degree, tilt)
  self.build(l, angle)
  expm(-1j * angle_in * jy)
why: the rotation matrices are kept in a dict of the object, each is built once
"""
import numpy as np
from scipy.linalg import expm


class Rotations:
    def __init__(self):
        self._known = {}

    def build(self, l, angle_in):
        m = np.arange(-l, l)
        up = np.sqrt(l * (l + 1) - m * (m + 1))
        jy = (np.diag(up, -1) - np.diag(up, 1)) / 2j
        return expm(-1j * angle_in * jy).real

    def matrix(self, l, angle):
        key = (l, round(angle, 12))
        if key not in self._known:
            self._known[key] = self.build(l, angle)
        return self._known[key]


def power(path, rotations, tilt=np.pi / 7):
    shells = np.load(path)
    total = {}
    for name in shells.files:
        coefficients = shells[name]
        start = 0
        degree = 0
        spectrum = []
        while start + 2 * degree + 1 <= len(coefficients):
            part = coefficients[start : start + 2 * degree + 1]
            rotated = rotations.matrix(degree, tilt) @ part
            spectrum.append(float(np.abs(rotated[degree]) ** 2))
            start += 2 * degree + 1
            degree += 1
        total[name] = spectrum
    return total


if __name__ == "__main__":
    print(power("shells.npz", Rotations()))
