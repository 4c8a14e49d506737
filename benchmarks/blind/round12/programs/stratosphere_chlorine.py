"""Ozone loss by active chlorine at ten levels of the polar stratosphere (scaled units, box model)."""
import math

import numpy as np
from scipy.integrate import solve_ivp

LEVELS = np.linspace(14.0, 26.0, 10)
MINUTES = 600.0
BINS = 2500


def sunlight(level):
    wave = np.linspace(200.0, 420.0, BINS)
    angles = np.linspace(0.0, 0.47 * math.pi, 900)
    cross = np.exp(-((wave - 255.0) / 28.0) ** 2) + 0.02 * np.exp(-((wave - 320.0) / 30.0) ** 2)
    column = 3.2 * math.exp(-(level - 14.0) / 9.0)
    flux = np.exp(-((wave - 400.0) / 150.0) ** 2)
    slant = column / np.cos(angles)
    photons = flux[None, :] * np.exp(-np.outer(slant, cross)) * cross[None, :]
    return float(photons.mean() * 4.0)


def rates(level):
    light = sunlight(level)
    density = math.exp(-(level - 14.0) / 7.0)
    return {
        "j_ozone": 0.012 * light, "join": 62.0 * density + 8.0,
        "attack": 44.0 * (0.6 + 0.4 * density), "recycle": 35.0,
        "hold": 0.02 * density, "free": 0.006 * light,
    }


def chemistry(t, y, j_ozone, join, attack, recycle, hold, free):
    atom, ozone, cl, clo, store = y.tolist()
    made = join * atom
    split = j_ozone * ozone
    lost = attack * cl * ozone
    back = recycle * clo * (0.3 + atom)
    kept = hold * clo
    freed = free * store
    return [split - made - recycle * clo * atom, made - split - lost,
            back + freed - lost, lost - back - kept, kept - freed]


def run_level(level):
    constants = rates(level)
    start = np.array([1e-4, 1.0, 2e-3, 1e-3, 4e-3])
    out = solve_ivp(chemistry, (0.0, MINUTES), start, method="RK45",
                    args=tuple(constants.values()), rtol=1e-5, atol=1e-9,
                    t_eval=np.linspace(0.0, MINUTES, 61))
    return out.t, out.y


def half_loss(times, ozone):
    lost = ozone[0] - ozone
    return float(times[int(np.argmax(lost >= 0.5 * lost[-1]))])


def main():
    column_start = column_end = 0.0
    for level in LEVELS:
        times, species = run_level(level)
        ozone = species[1]
        weight = math.exp(-(level - 14.0) / 7.0)
        column_start += weight * ozone[0]
        column_end += weight * ozone[-1]
        active = (species[2] + species[3])[-1]
        print(f"{level:5.2f} km: ozone {ozone[-1]:.4f}, half of the loss after {half_loss(times, ozone):5.0f} min, "
              f"active chlorine {active:.5f}")
    print(f"column {100.0 * (1.0 - column_end / column_start):.2f} % lost")


if __name__ == "__main__":
    main()
