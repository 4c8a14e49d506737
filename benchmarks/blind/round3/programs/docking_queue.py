"""Rigid docking scores of a ligand library, spread over the cores."""
import os
from concurrent.futures import ProcessPoolExecutor

import numpy as np

LIGANDS = 600
RECEPTOR_ATOMS = 48


def receptor(seed=1):
    rng = np.random.default_rng(seed)
    xyz = rng.normal(0.0, 12.0, (RECEPTOR_ATOMS, 3))
    charge = rng.normal(0.0, 0.4, RECEPTOR_ATOMS)
    return xyz, charge


def library(seed=2):
    """Catalogue numbers run from the fragments to the macrocycles."""
    rng = np.random.default_rng(seed)
    weights = np.sort(rng.integers(24, 110, LIGANDS))
    return [(k, int(atoms)) for k, atoms in enumerate(weights)]


def conformer(number, atoms):
    rng = np.random.default_rng(10_000 + number)
    steps = rng.standard_normal((atoms, 3))
    steps /= np.linalg.norm(steps, axis=1)[:, None]
    xyz = np.cumsum(1.5 * steps, axis=0)
    return xyz - xyz.mean(axis=0), rng.normal(0.0, 0.3, atoms), rng


def rotation(rng):
    q = rng.standard_normal(4)
    w, x, y, z = q / np.linalg.norm(q)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def energy(xyz, charge, site, site_charge):
    gap = xyz[:, None, :] - site[None, :, :]
    r2 = np.einsum("ijk,ijk->ij", gap, gap) + 1.0
    s6 = (9.0 / r2) ** 3
    coulomb = np.outer(charge, site_charge) / np.sqrt(r2)
    return float(np.sum(0.2 * (s6 * s6 - 2.0 * s6)) + 80.0 * coulomb.sum())


def dock(job):
    """Bigger ligands get more poses: four for every atom."""
    number, atoms = job
    site, site_charge = receptor()
    xyz, charge, rng = conformer(number, atoms)
    best = np.inf
    for _ in range(4 * atoms):
        pose = xyz @ rotation(rng).T + rng.normal(0.0, 4.0, 3)
        best = min(best, energy(pose, charge, site, site_charge))
    return number, best


def main():
    jobs = library()
    workers = min(2, os.cpu_count() or 1)
    share = len(jobs) // workers
    with ProcessPoolExecutor(workers) as pool:
        scores = dict(pool.map(dock, jobs, chunksize=share))
    order = sorted(scores, key=scores.get)[:8]
    print(f"{len(scores)} ligands docked")
    for number in order:
        print(f"  ligand {number:4d}  {scores[number]:9.3f}")


if __name__ == "__main__":
    main()
