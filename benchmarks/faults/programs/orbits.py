"""Planets around a star: their forces in NumPy, or in loops of Python."""

from __future__ import annotations

import argparse
import time

import numpy as np


def forces_by_loops(places: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """Return accelerations [bodies, 3], pair by pair."""
    result = np.zeros_like(places)
    for one in range(len(places)):
        for other in range(len(places)):
            if one != other:
                apart = [places[other][axis] - places[one][axis] for axis in range(3)]
                square = sum(length * length for length in apart) + 1e-4
                for axis in range(3):
                    result[one][axis] += masses[other] * apart[axis] / square**1.5
    return result


def forces(places: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """Return accelerations [bodies, 3], all pairs at once."""
    apart = places[None] - places[:, None]
    weights = masses / ((apart**2).sum(-1) + 1e-4) ** 1.5
    return np.einsum("ij,ijk->ik", weights, apart)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bodies", type=int, default=64)
    parser.add_argument("--loops", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()

    rng = np.random.default_rng(options.seed)
    places = rng.normal(0, 1, (options.bodies, 3))
    speeds = np.cross(places, [0, 0, 0.5])
    masses = rng.uniform(0, 0.01, options.bodies)
    acceleration = forces_by_loops if options.loops else forces
    steps, began_s = 0, time.monotonic()
    while time.monotonic() - began_s < options.seconds:
        speeds += 0.001 * acceleration(places, masses)
        places += 0.001 * speeds
        steps += 1
    elapsed_s = time.monotonic() - began_s
    print(f"{steps} steps, spread {places.std():.3f}, {steps / elapsed_s:.3f} steps/s")


if __name__ == "__main__":
    main()
