"""Orbits of stars in a rotating bar potential, integrated with DOP853."""
import numpy as np
from scipy.integrate import solve_ivp

STARS = 900
PERIODS = 7.0
OMEGA = 0.9


def sample():
    rng = np.random.default_rng(505)
    r = rng.uniform(0.5, 3.0, STARS)
    phi = rng.uniform(0, 2 * np.pi, STARS)
    speed = np.sqrt(r * r / (r * r + 0.2)) * rng.normal(1, 0.08, STARS)
    return np.concatenate([r * np.cos(phi), r * np.sin(phi), rng.normal(0, 0.1, STARS),
                           -speed * np.sin(phi), speed * np.cos(phi), rng.normal(0, 0.05, STARS)])


def force(t, w):
    x, y, z, vx, vy, vz = w.reshape(6, -1)
    c, s = np.cos(OMEGA * t), np.sin(OMEGA * t)
    bx, by = c * x + s * y, -s * x + c * y
    halo = 1.0 / (x * x + y * y + z * z / 0.64 + 0.2)
    fx, fy, fz = -x * halo, -y * halo, -z * halo / 0.64
    for knot in range(-7, 8):
        d = bx - 0.13 * knot
        inv = 0.02 * (1 - 0.1 * abs(knot)) * (d * d + by * by + z * z + 0.04) ** -1.5
        gx, gy = -d * inv, -by * inv
        fx = fx + c * gx - s * gy
        fy = fy + s * gx + c * gy
        fz = fz - z * inv
    return np.concatenate([vx, vy, vz, fx, fy, fz])


def jacobi(w, t):
    x, y, z, vx, vy, vz = w.reshape(6, -1)
    return 0.5 * (vx ** 2 + vy ** 2 + vz ** 2) + 0.5 * np.log(x * x + y * y + z * z / 0.64 + 0.2) \
        - OMEGA * (x * vy - y * vx)


def main():
    w = sample()
    e0 = jacobi(w, 0.0)
    span = 2 * np.pi * PERIODS
    marks = np.linspace(0, span, 57)
    reach = np.zeros(STARS)
    calls = 0
    for a, b in zip(marks[:-1], marks[1:]):
        sol = solve_ivp(force, (a, b), w, method="DOP853", rtol=1e-9, atol=1e-9)
        w = sol.y[:, -1]
        calls += sol.nfev
        reach = np.maximum(reach, np.hypot(w[:STARS], w[STARS:2 * STARS]))
    e1 = jacobi(w, span)
    print(f"{calls} force evaluations, median reach {np.median(reach):.4f}, "
          f"median change of the Jacobi constant {np.median(np.abs(e1 - e0)):.4f}")


if __name__ == "__main__":
    main()
