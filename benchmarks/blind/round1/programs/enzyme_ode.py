"""Stiff enzyme kinetics for a range of inhibitor levels."""
import numpy as np
from scipy.integrate import solve_ivp


def rhs(t, y, inh):
    e, s, es, p, ei = y
    k1, k2, k3, k4 = 100.0, 1.0, 50.0, 10.0 * inh
    return [-k1 * e * s + (k2 + k3) * es - k4 * e + ei,
            -k1 * e * s + k2 * es,
            k1 * e * s - (k2 + k3) * es,
            k3 * es,
            k4 * e - ei]


half = []
for inh in np.logspace(-3, 2, 60):
    sol = solve_ivp(rhs, (0, 60), [0.01, 1, 0, 0, 0], "LSODA", args=(inh,), rtol=1e-9, atol=1e-12, max_step=0.02)
    half.append(np.interp(0.5, sol.y[3], sol.t))
    if len(half) % 5 == 0:
        print(f"{inh:9.4f} {half[-1]:.3f}", flush=True)
