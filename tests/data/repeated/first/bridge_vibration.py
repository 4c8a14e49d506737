"""
verdict: same
stack:
  simulate(BeamModel.load("beam.npz"), t_end=20.0)
  solve_ivp(rhs, (0.0, t_end), y0, max_step=1e-3)
  lib:scipy/integrate/_ivp/ivp.py:solve_ivp
  lib:scipy/integrate/_ivp/base.py:OdeSolver.step
  lib:scipy/integrate/_ivp/rk.py:RungeKutta._step_impl
  acceleration(model, u, v, t)
  np.linalg.inv(m.mass)
call: np.linalg.inv(m.mass)
loop: def rhs(t, y)
why: the mass matrix is constant and is inverted each time the integrator evaluates the right-hand side
"""
from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp


@dataclass
class BeamModel:
    mass: np.ndarray
    damping: np.ndarray
    stiffness: np.ndarray
    load: np.ndarray

    @classmethod
    def load(cls, path):
        z = np.load(path)
        return cls(z["m"], z["c"], z["k"], z["f"])


def acceleration(m, disp, vel, time):
    force = m.load * np.sin(2 * np.pi * 1.3 * time)
    return np.linalg.inv(m.mass) @ (force - m.damping @ vel - m.stiffness @ disp)


def simulate(model, t_end):
    n = len(model.load)
    y0 = np.zeros(2 * n)

    def rhs(t, y):
        u, v = y[:n], y[n:]
        return np.concatenate([v, acceleration(model, u, v, t)])

    result = solve_ivp(rhs, (0.0, t_end), y0, max_step=1e-3)
    return result.t, result.y[: n]


if __name__ == "__main__":
    t, u = simulate(BeamModel.load("beam.npz"), t_end=20.0)
    print(np.abs(u).max())
