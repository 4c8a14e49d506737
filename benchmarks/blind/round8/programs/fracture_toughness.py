"""Scatter of the fracture toughness of ceramic bars.

Random strength fields are loaded in steps, and the load at which a long crack
forms is noted. The bars of one step are computed by two worker processes.
"""
import multiprocessing as mp

import numpy as np
from scipy import fft, ndimage

SIZE = 320
BARS = 40
STEPS = 14


def strength_field(seed):
    rng = np.random.default_rng(seed)
    k = np.hypot(*np.meshgrid(fft.fftfreq(SIZE), fft.fftfreq(SIZE)))
    spectrum = fft.fft2(rng.normal(size=(SIZE, SIZE))) * np.exp(-(k * 18.0) ** 2)
    field = fft.ifft2(spectrum).real
    return 1.0 + 0.12 * field / field.std()


def weakest_chain(job):
    seed, load = job
    field = strength_field(seed)
    stress = np.full_like(field, load)
    cracked = np.zeros(field.shape, dtype=bool)
    for _ in range(14):
        fresh = (stress > field) & ~cracked
        if not fresh.any():
            break
        cracked |= fresh
        halo = ndimage.gaussian_filter(cracked.astype(float), 5.0)
        stress = load * (1.0 + 0.9 * halo)
    labels, count = ndimage.label(cracked)
    longest = 0
    if count:
        for rows, cols in ndimage.find_objects(labels):
            longest = max(longest, cols.stop - cols.start)
    return seed, int(cracked.sum()), longest


def load_step(seeds, load):
    jobs = [(seed, load) for seed in seeds]
    with mp.get_context("spawn").Pool(2) as pool:
        return pool.map(weakest_chain, jobs)


def main():
    seeds = list(range(900, 900 + BARS))
    broken = {}
    for step in range(STEPS):
        load = 0.50 + 0.02 * step
        damage = 0
        for seed, area, longest in load_step(seeds, load):
            damage += area
            if longest > SIZE // 4:
                broken.setdefault(seed, load)
        print(f"load {load:.2f}: {len(broken)} bars broken, damage {damage / BARS / SIZE ** 2:.4f}")
    loads = np.array(sorted(broken.values()))
    if len(loads) > 2:
        print(f"mean breaking load {loads.mean():.3f}, spread {loads.std():.3f}")


if __name__ == "__main__":
    main()
