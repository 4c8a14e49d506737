"""Forecast the Lorenz system with an orthogonal echo-state network."""
import numpy as np
from scipy.linalg import cho_factor, cho_solve

N_UNITS = 1600
N_TRAIN = 24_000
N_FREE = 1500
WASHOUT = 300
DT = 0.02


def lorenz(n):
    def slope(s):
        x, y, z = s
        return np.array([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z])

    states = np.empty((n, 3))
    s = np.array([1.0, 1.0, 20.0])
    for i in range(n):
        a = slope(s)
        b = slope(s + 0.5 * DT * a)
        c = slope(s + 0.5 * DT * b)
        d = slope(s + DT * c)
        s = s + DT / 6.0 * (a + 2 * b + 2 * c + d)
        states[i] = s
    return (states - states.mean(0)) / states.std(0)


class Reservoir:
    def __init__(self, rng):
        q, r = np.linalg.qr(rng.normal(size=(N_UNITS, N_UNITS)).astype(np.float32))
        self.inner = np.ascontiguousarray(0.95 * q * np.sign(np.diag(r))).astype(np.float32)
        self.outer = rng.uniform(-0.3, 0.3, (N_UNITS, 3)).astype(np.float32)
        self.bias = rng.uniform(-0.2, 0.2, N_UNITS).astype(np.float32)
        self.state = np.zeros(N_UNITS, np.float32)

    def step(self, u):
        drive = self.inner @ self.state + self.outer @ u + self.bias
        self.state = np.tanh(drive)
        return self.state


def main():
    rng = np.random.default_rng(0)
    series = lorenz(N_TRAIN + N_FREE + 1).astype(np.float32)
    reservoir = Reservoir(rng)

    states = np.empty((N_TRAIN, N_UNITS), np.float32)
    for t in range(N_TRAIN):
        states[t] = reservoir.step(series[t])
    print(f"{N_TRAIN} states of {N_UNITS} units collected", flush=True)

    kept, target = states[WASHOUT:].astype(np.float64), series[WASHOUT + 1 : N_TRAIN + 1]
    gram = kept.T @ kept
    gram[np.diag_indices(N_UNITS)] += 1e-1
    readout = cho_solve(cho_factor(gram), kept.T @ target).astype(np.float32)
    print(f"training rms error {np.sqrt(np.mean((kept @ readout - target) ** 2)):.5f}", flush=True)

    output = series[N_TRAIN]
    free = np.empty((N_FREE, 3), np.float32)
    for t in range(N_FREE):
        output = reservoir.step(output) @ readout
        free[t] = output
    error = np.linalg.norm(free - series[N_TRAIN + 1 : N_TRAIN + 1 + N_FREE], axis=1)
    wrong = np.nonzero(error > 1.0)[0]
    horizon = wrong[0] if len(wrong) else N_FREE
    print(f"free run follows the system for {horizon * DT:.2f} time units")


if __name__ == "__main__":
    main()
