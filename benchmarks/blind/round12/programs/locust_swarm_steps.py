"""Marching band of desert locusts: alignment with neighbours on a periodic arena."""
import multiprocessing as mp

import numpy as np
from scipy.spatial import cKDTree

INSECTS = 60_000
ARENA = 120.0
REACH = 1.1
STEPS = 24


def new_headings(job):
    lo, hi, position, heading, seed = job
    tree = cKDTree(position, boxsize=ARENA)
    near = tree.query_ball_point(position[lo:hi], REACH)
    counts = np.fromiter((len(n) for n in near), dtype=np.int64, count=hi - lo)
    flat = np.fromiter((j for n in near for j in n), dtype=np.int64, count=int(counts.sum()))
    owner = np.repeat(np.arange(hi - lo), counts)
    east = np.bincount(owner, np.cos(heading[flat]), minlength=hi - lo)
    north = np.bincount(owner, np.sin(heading[flat]), minlength=hi - lo)
    wobble = np.random.default_rng(seed).vonmises(0.0, 9.0, size=hi - lo)
    return np.arctan2(north, east) + wobble


def jobs(position, heading, step):
    half = INSECTS // 2
    return [(0, half, position, heading, 2 * step), (half, INSECTS, position, heading, 2 * step + 1)]


def march(position, heading):
    context = mp.get_context("spawn")
    order = []
    for step in range(STEPS):
        with context.Pool(2) as pool:
            parts = pool.map(new_headings, jobs(position, heading, step))
        heading = np.concatenate(parts)
        move = np.stack([np.cos(heading), np.sin(heading)], axis=1)
        position = np.mod(position + 0.2 * move, ARENA)
        order.append(float(np.hypot(*move.mean(axis=0))))
    return position, heading, order


def patchiness(position):
    counts, _, _ = np.histogram2d(position[:, 0], position[:, 1], bins=60, range=[[0, ARENA], [0, ARENA]])
    return counts.var() / counts.mean()


def main():
    rng = np.random.default_rng(40)
    position = rng.uniform(0.0, ARENA, size=(INSECTS, 2))
    heading = rng.uniform(-np.pi, np.pi, size=INSECTS)
    start = patchiness(position)
    position, heading, order = march(position, heading)
    for step in range(0, STEPS, 6):
        print(f"step {step:2d}: order {order[step]:.4f}")
    print(f"patchiness {start:.3f} -> {patchiness(position):.3f}, final order {order[-1]:.4f}")


if __name__ == "__main__":
    main()
