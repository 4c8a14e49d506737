"""Covariance parameters of nitrate in groundwater by restricted search.

The log likelihood of a Gaussian field with Matern covariance is evaluated
exactly for all wells; parameters are moved by an adaptive random search.
"""
import math
import sys
import time

import numpy as np
import torch

device = "cuda" if torch.cuda.is_available() else "cpu"

WELLS = 16384 if device == "cuda" else 1024
NUGGET = 1e-5


def make_wells():
    gen = torch.Generator(device=device).manual_seed(30)
    place = 100.0 * torch.rand(WELLS, 2, generator=gen, device=device, dtype=torch.float64)
    waves = 0.25 * torch.randn(2, 64, generator=gen, device=device, dtype=torch.float64)
    phase = 6.28 * torch.rand(64, generator=gen, device=device, dtype=torch.float64)
    field = torch.cos(place @ waves + phase).sum(1) / math.sqrt(32.0)
    field += 0.003 * torch.randn(WELLS, generator=gen, device=device, dtype=torch.float64)
    return place, field - field.mean()


def covariance(distance, reach, variance):
    scaled = distance * (math.sqrt(3.0) / reach)
    matrix = torch.exp(-scaled)
    matrix.mul_(scaled.add_(1.0)).mul_(variance)
    matrix.diagonal().add_(NUGGET)
    return matrix


def log_likelihood(distance, values, reach, variance):
    factor, info = torch.linalg.cholesky_ex(covariance(distance, reach, variance))
    white = torch.linalg.solve_triangular(factor, values[:, None], upper=False)
    result = -0.5 * white.square().sum() - factor.diagonal().log().sum()
    result -= 0.5 * len(values) * math.log(2 * math.pi)
    bad = info != 0
    return torch.where(bad, -torch.inf, result).item()


def main():
    budget_s = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    rng = np.random.default_rng(30)
    place, values = make_wells()
    distance = torch.cdist(place, place)
    point = np.log([8.0, 1.0])
    best = -math.inf
    width = 0.4

    start = time.perf_counter()
    evaluations = 0
    while time.perf_counter() - start < budget_s:
        trial = point + width * rng.standard_normal(2) if evaluations else point
        reach, variance = np.exp(trial).tolist()
        value = log_likelihood(distance, values, reach, variance)
        if value > best:
            best, point = value, trial
            width = min(width * 1.3, 0.5)
        else:
            width = max(width * 0.93, 0.01)
        evaluations += 1

    print(f"done: {evaluations} evaluations, range {math.exp(point[0]):.2f} km, "
          f"log likelihood {best:.1f}")


if __name__ == "__main__":
    main()
