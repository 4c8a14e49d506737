"""Thaw depth of a permafrost column under a warming surface (implicit scheme)."""
import numpy as np

N = 1400
DZ = 0.02
DT = 2.0 * 86400
STEPS = 180
K_ICE, K_WATER = 2.2, 0.9
C_ICE, C_WATER = 1.9e6, 2.8e6
LATENT = 9.0e7


def liquid_share(temp):
    return 1.0 / (1.0 + np.exp(-6.0 * (temp + 0.4)))


def properties(temp):
    w = liquid_share(temp)
    k = K_ICE + (K_WATER - K_ICE) * w
    c = C_ICE + (C_WATER - C_ICE) * w + LATENT * 6.0 * w * (1.0 - w)
    return k, c


def advance(temp, surface, flux):
    k, c = properties(temp)
    face = 2.0 * k[1:] * k[:-1] / (k[1:] + k[:-1])
    r = DT / DZ ** 2
    main = np.ones(N)
    lower = np.zeros(N - 1)
    upper = np.zeros(N - 1)
    main[1:] += r * face / c[1:]
    main[:-1] += r * face / c[:-1]
    lower[:] = -r * face / c[1:]
    upper[:] = -r * face / c[:-1]
    rhs = temp.copy()
    main[0], upper[0], rhs[0] = 1.0, 0.0, surface
    rhs[-1] += flux * DT / (DZ * c[-1])
    matrix = np.diag(main) + np.diag(lower, -1) + np.diag(upper, 1)
    return np.linalg.solve(matrix, rhs)


def thaw_depth(temp):
    frozen = np.flatnonzero(temp < 0.0)
    if frozen.size == 0:
        return N * DZ
    i = frozen[0]
    if i == 0:
        return 0.0
    return DZ * (i - 1 + temp[i - 1] / (temp[i - 1] - temp[i]))


def main():
    rng = np.random.default_rng(68)
    z = np.arange(N) * DZ
    temp = -6.0 + 0.02 * z
    depth = np.zeros(STEPS)
    profiles = []
    for s in range(STEPS):
        day = s * DT / 86400
        surface = -4.0 + 14.0 * np.sin(2 * np.pi * (day - 100) / 365.25)
        surface += 0.002 * day + rng.normal(0, 1.2)
        temp = advance(temp, surface, 0.06)
        depth[s] = thaw_depth(temp)
        profiles.append(temp)

    grid = np.linspace(0, z[-1], 6000)
    spread = []
    for b in range(9000):
        pick = profiles[rng.integers(STEPS)]
        noisy = np.interp(grid, z, pick) + rng.normal(0, 0.15, grid.size)
        spread.append(np.percentile(noisy, [5, 50, 95]))
    q = np.mean(spread, axis=0)
    print(f"deepest thaw {depth.max():.4f} m, mean {depth.mean():.4f} m")
    print(f"bottom {temp[-1]:.5f} C, quantiles {q[0]:.4f} {q[1]:.4f} {q[2]:.4f}")


if __name__ == "__main__":
    main()
