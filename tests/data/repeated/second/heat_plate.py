"""
verdict: same
stack:
  simulate(SIDE, STEPS, DT)
  advance(temperature, operator, dt)
  splu(system)
call: splu(system)
loop: for step in range(steps)
why: the matrix depends only on the operator and the step width, neither of which changes, so it is factorised again for each right-hand side
"""
import numpy as np
from scipy.sparse import diags, identity, kron
from scipy.sparse.linalg import splu

SIDE = 200
STEPS = 500
DT = 1e-3


def laplacian(n):
    h = 1.0 / (n + 1)
    one_d = diags([1.0, -2.0, 1.0], [-1, 0, 1], shape=(n, n)) / h**2
    eye = identity(n)
    return (kron(one_d, eye) + kron(eye, one_d)).tocsc()


def advance(u, lap, tau):
    system = (identity(lap.shape[0], format="csc") - tau * lap).tocsc()
    lu = splu(system)
    return lu.solve(u)


def simulate(n, steps, dt):
    operator = laplacian(n)
    grid = np.linspace(0, 1, n)
    xx, yy = np.meshgrid(grid, grid)
    temperature = np.exp(-60 * ((xx - 0.3) ** 2 + (yy - 0.6) ** 2)).ravel()
    history = []
    for step in range(steps):
        temperature = advance(temperature, operator, dt)
        if step % 50 == 0:
            history.append(temperature.max())
    return temperature.reshape(n, n), history


final, maxima = simulate(SIDE, STEPS, DT)
np.save("plate.npy", final)
print(maxima)
