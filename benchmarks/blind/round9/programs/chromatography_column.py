"""Breakthrough of two sugars in a chromatography column (transport with a linear-driving-force film)."""
import numpy as np
from scipy.integrate import solve_ivp, trapezoid

CELLS = 300
SPECIES = 2
LENGTH = 1.2
VELOCITY = 0.004
DISPERSION = 2.0e-6
POROSITY = 0.4
AFFINITY = np.array([1.2, 2.6])
CAPACITY = np.array([3.0, 3.5])
FILM = np.array([0.08, 0.05])


def feed(t, pulse):
    level = 0.5 * (1.0 + np.tanh((pulse - t) / 4.0))
    return np.array([1.0, 0.8]) * level


def rates(t, state, pulse):
    """State: for each cell the mobile and then the bound concentration of both sugars."""
    grid = state.reshape(CELLS, 2 * SPECIES)
    mobile, bound = grid[:, :SPECIES], grid[:, SPECIES:]
    dx = LENGTH / CELLS
    padded = np.vstack([feed(t, pulse), mobile, mobile[-1]])
    advect = -VELOCITY / POROSITY * (padded[1:-1] - padded[:-2]) / dx
    disperse = DISPERSION * (padded[2:] - 2 * padded[1:-1] + padded[:-2]) / dx ** 2
    load = AFFINITY * np.maximum(mobile, 0.0)
    equilibrium = CAPACITY * load / (1.0 + load.sum(axis=1, keepdims=True))
    uptake = FILM * (equilibrium - bound)
    change = np.empty_like(grid)
    change[:, :SPECIES] = advect + disperse - (1 - POROSITY) / POROSITY * uptake
    change[:, SPECIES:] = uptake
    return change.ravel()


def run(pulse):
    start = np.zeros(CELLS * 2 * SPECIES)
    times = np.linspace(0.0, 900.0, 181)
    result = solve_ivp(rates, (0.0, 900.0), start, method="BDF", t_eval=times,
                       args=(pulse,), rtol=1e-5, atol=1e-8)
    outlet = result.y.reshape(CELLS, 2 * SPECIES, -1)[-1, :SPECIES]
    return times, outlet, result


def main():
    for pulse in (60.0, 240.0):
        times, outlet, result = run(pulse)
        area = trapezoid(outlet, times, axis=1)
        centre = trapezoid(outlet * times, times, axis=1) / np.maximum(area, 1e-12)
        print("pulse %3.0f s: peaks %.4f %.4f, centres %.1f s %.1f s, ok %s"
              % (pulse, *outlet.max(axis=1), *centre, result.success))


if __name__ == "__main__":
    main()
