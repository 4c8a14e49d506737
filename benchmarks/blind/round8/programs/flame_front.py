"""Speed of a premixed flame for three fuels (method of lines).

Temperature and fuel fraction on a line, one-step Arrhenius chemistry, stiff
time integration; the front is followed through the stored profiles.
"""
import numpy as np
from scipy.integrate import solve_ivp

CELLS = 550
LENGTH = 60.0
END = 14.0
ZELDOVICH = 8.0
ALPHA = 0.8


def grid():
    return (np.arange(CELLS) + 0.5) * LENGTH / CELLS


def initial(x):
    heat = np.minimum(1.0, np.exp(x - 42.0))
    return np.concatenate([heat, 1.0 - heat])


def laplacian(u, left, right, dx):
    padded = np.empty(CELLS + 2)
    padded[1:-1] = u
    padded[0] = left
    padded[-1] = right
    return (padded[2:] - 2.0 * padded[1:-1] + padded[:-2]) / dx ** 2


def make_rhs(lewis, dx):
    factor = ZELDOVICH ** 2 / (2.0 * lewis)

    def rhs(t, state):
        heat, fuel = state[:CELLS], state[CELLS:]
        burn = factor * fuel * np.exp(
            -ZELDOVICH * (1.0 - heat) / (1.0 - ALPHA * (1.0 - heat)))
        dheat = laplacian(heat, 0.0, heat[-1], dx) + burn
        dfuel = laplacian(fuel, 1.0, fuel[-1], dx) / lewis - burn
        return np.concatenate([dheat, dfuel])

    return rhs


def front_positions(solution, x):
    places = []
    for heat in solution.y[:CELLS].T:
        first = int(np.argmax(heat > 0.5))
        low, high = heat[first - 1], heat[first]
        places.append(x[first - 1] + (0.5 - low) / (high - low) * (x[1] - x[0]))
    return np.array(places)


def run(lewis):
    x = grid()
    rhs = make_rhs(lewis, x[1] - x[0])
    times = np.linspace(0.0, END, 57)
    solution = solve_ivp(rhs, (0.0, END), initial(x), method="BDF", t_eval=times,
                         rtol=1e-5, atol=1e-7)
    places = front_positions(solution, x)
    late = times > END / 2
    speed = -np.polyfit(times[late], places[late], 1)[0]
    return speed, solution


def main():
    for lewis in (0.8, 1.0, 1.2):
        speed, solution = run(lewis)
        peak = solution.y[:CELLS].max()
        print(f"Lewis {lewis:.1f}: speed {speed:.4f}, peak temperature {peak:.4f}, "
              f"{solution.nfev} evaluations")


if __name__ == "__main__":
    main()
