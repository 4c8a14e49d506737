"""
verdict: set
stack:
  search()
  chi_square(observations, mass)
  convolved(obs["source"], obs["psf"])
  fftconvolve(image, kernel / kernel.sum(), mode="same")
call: convolved(obs["source"], obs["psf"])
loop: while high - low > tolerance | for mass in (a, b)
why: the blurred source of each observation does not depend on the mass, but is made again in each step of the search
"""
import numpy as np
from astropy.io import fits
from scipy.ndimage import shift
from scipy.signal import fftconvolve


def read_observation(path):
    with fits.open(path) as hdus:
        data = {name: hdus[name].data.astype(float) for name in ("SCI", "SRC", "PSF", "ERR")}
        angle = hdus[0].header["PA"]
    return {"image": data["SCI"], "source": data["SRC"], "psf": data["PSF"],
            "sigma": data["ERR"], "angle": np.radians(angle)}


def convolved(image, kernel):
    return fftconvolve(image, kernel / kernel.sum(), mode="same")


def chi_square(observations, lens_mass):
    total = 0.0
    for obs in observations:
        blurred = convolved(obs["source"], obs["psf"])
        offset = lens_mass * np.array([np.sin(obs["angle"]), np.cos(obs["angle"])])
        model = shift(blurred, offset, order=1)
        total += (((obs["image"] - model) / obs["sigma"]) ** 2).sum()
    return total


def search(tolerance=1e-3):
    observations = [read_observation(f"visit{k}.fits") for k in range(1, 9)]
    low, high = 0.0, 20.0
    ratio = (np.sqrt(5) - 1) / 2
    while high - low > tolerance:
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        values = []
        for mass in (a, b):
            values.append(chi_square(observations, mass))
        if values[0] < values[1]:
            high = b
        else:
            low = a
    return (low + high) / 2


def report(value):
    print(f"mass {value:.3f}")


if __name__ == "__main__":
    report(search())
