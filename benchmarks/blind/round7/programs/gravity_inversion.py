"""Depth of a sedimentary basin from gravity along a profile, with an ensemble for the uncertainty."""
import numpy as np
from scipy.optimize import minimize

N_STATIONS, N_COLUMNS = 420, 110
LENGTH_KM = 60.0
DENSITY = -0.42            # g/cm3 against the basement
TOP_KM = 0.08
SMOOTH = 0.6
SIGMA = 0.35               # mGal
N_MEMBERS = 8
ITERATIONS = 32

station = np.linspace(0.0, LENGTH_KM, N_STATIONS)
column = np.linspace(0.5, LENGTH_KM - 0.5, N_COLUMNS)
WIDTH = column[1] - column[0]
offset2 = (station[:, None] - column[None, :]) ** 2
SHEET = 2.0 * 6.674 * DENSITY * WIDTH * 0.5
top_term = np.log(offset2 + TOP_KM ** 2)


def gravity(depth):
    """Field in mGal of vertical sheets from the top to the given depths."""
    return SHEET * (np.log(offset2 + depth[None, :] ** 2) - top_term).sum(axis=1)


def misfit(depth, data):
    residual = (gravity(depth) - data) / SIGMA
    rough = np.diff(depth) / SMOOTH
    return 0.5 * float(residual @ residual) + 0.5 * float(rough @ rough)


def true_basin():
    x = column / LENGTH_KM
    return 0.4 + 3.2 * np.exp(-((x - 0.4) / 0.12) ** 2) + 1.8 * np.exp(-((x - 0.75) / 0.06) ** 2)


def invert(data, start):
    answer = minimize(
        misfit, start, args=(data,), method="L-BFGS-B",
        bounds=[(0.1, 8.0)] * N_COLUMNS,
        options={"maxiter": ITERATIONS, "maxfun": 10 ** 7, "ftol": 1e-13, "gtol": 1e-9},
    )
    return answer.x, answer.fun


def main():
    rng = np.random.default_rng(90)
    truth = true_basin()
    clean = gravity(truth)
    members, values = [], []
    for member in range(N_MEMBERS):
        data = clean + rng.normal(0, SIGMA, N_STATIONS)
        start = np.full(N_COLUMNS, 0.8 + 0.1 * member)
        depth, value = invert(data, start)
        members.append(depth)
        values.append(value)
    members = np.array(members)
    error = members.mean(axis=0) - truth
    print("members", N_MEMBERS, "mean misfit %.0f" % np.mean(values))
    print("deepest %.1f km at %.0f km" % (members.mean(axis=0).max(), column[members.mean(axis=0).argmax()]))
    print("rms error %.1f km" % np.sqrt((error ** 2).mean()))


if __name__ == "__main__":
    main()
