"""Line flows of an island power grid under many wind and demand scenarios (DC model)."""
import warnings

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spl

warnings.filterwarnings("ignore")

SIDE = 80
SCENARIOS = 130


def make_lines(rng):
    lines = []
    for y in range(SIDE):
        for x in range(SIDE):
            bus = y * SIDE + x
            if x + 1 < SIDE and rng.random() < 0.96:
                lines.append((bus, bus + 1, rng.uniform(4.0, 12.0)))
            if y + 1 < SIDE:
                lines.append((bus, bus + SIDE, rng.uniform(4.0, 12.0)))
    for _ in range(60):
        a, b = rng.integers(0, SIDE * SIDE, 2)
        if a != b:
            lines.append((int(a), int(b), rng.uniform(1.0, 3.0)))
    return lines


def admittance(lines):
    buses = SIDE * SIDE
    matrix = sp.csr_matrix((buses, buses))
    for a, b, y in lines:
        matrix[a, a] += y
        matrix[b, b] += y
        matrix[a, b] -= y
        matrix[b, a] -= y
    matrix[0, 0] += 1e4
    return matrix.tocsc()


def scenario(rng, base):
    demand = base * rng.uniform(0.7, 1.3, base.size)
    wind = np.zeros(base.size)
    farms = np.arange(37, base.size, 211)
    wind[farms] = rng.weibull(2.0, farms.size)
    wind *= demand.sum() / wind.sum()
    return wind - demand


def flows(angles, ends, strength):
    return strength * (angles[ends[0]] - angles[ends[1]])


def main():
    rng = np.random.default_rng(1951)
    lines = make_lines(rng)
    matrix = admittance(lines)
    ends = np.array([(a, b) for a, b, _ in lines]).T
    strength = np.array([y for _, _, y in lines])
    base = rng.gamma(2.0, 0.02, SIDE * SIDE)
    load = np.zeros((SCENARIOS, len(lines)))
    for k in range(SCENARIOS):
        angles = spl.spsolve(matrix, scenario(rng, base))
        load[k] = flows(angles, ends, strength)
    limit = np.quantile(np.abs(load), 0.999)
    crowded = (np.abs(load) > limit).sum(axis=0)
    worst = int(crowded.argmax())
    print(f"{SIDE * SIDE} buses, {len(lines)} lines, {SCENARIOS} scenarios")
    print(f"limit {limit:.4f}, most crowded line {ends[0][worst]} - {ends[1][worst]}")
    print(f"mean absolute flow {np.abs(load).mean():.6f}")


if __name__ == "__main__":
    main()
