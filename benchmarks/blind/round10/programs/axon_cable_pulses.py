"""Pulses along an axon: the FitzHugh-Nagumo cable, solved with an implicit method."""
import numpy as np
from scipy.integrate import solve_ivp

NODES = 740
DX = 0.05
DIFFUSION = 1.0
THRESHOLD = 0.1
RECOVERY = 0.01
T_END = 560.0
BEAT = 110.0


def stimulus(t):
    return 0.6 if (t % BEAT) < 4.0 else 0.0


def cable(t, y):
    v, w = y[:NODES], y[NODES:]
    out = np.empty_like(y)
    dv = out[:NODES]
    dv[1:-1] = v[2:] - 2.0 * v[1:-1] + v[:-2]
    dv[0] = 2.0 * (v[1] - v[0])
    dv[-1] = 2.0 * (v[-2] - v[-1])
    dv *= DIFFUSION / DX ** 2
    dv += v * (1.0 - v) * (v - THRESHOLD) - w
    dv[:40] += stimulus(t)
    out[NODES:] = RECOVERY * (v - 2.5 * w)
    return out


def arrivals(time, trace, level=0.5):
    above = trace > level
    rises = np.flatnonzero(~above[:-1] & above[1:])
    part = (level - trace[rises]) / (trace[rises + 1] - trace[rises])
    return time[rises] + part * (time[rises + 1] - time[rises])


def main():
    rest = np.zeros(2 * NODES)
    grid = np.linspace(0.0, T_END, 4001)
    solution = solve_ivp(cable, (0.0, T_END), rest, method="BDF", t_eval=grid,
                         rtol=1e-4, atol=1e-6, max_step=2.0)
    near = arrivals(solution.t, solution.y[NODES // 4])
    far = arrivals(solution.t, solution.y[3 * NODES // 4])
    pulses = min(near.size, far.size)
    distance = NODES // 2 * DX
    print(f"{NODES} nodes, {solution.t.size} times, status {solution.status}")
    print(f"{pulses} pulses passed both electrodes")
    if pulses:
        speed = distance / (far[:pulses] - near[:pulses])
        print("speeds: " + " ".join(f"{s:.3f}" for s in speed))
    print(f"largest potential {solution.y[:NODES].max():.4f}")


if __name__ == "__main__":
    main()
