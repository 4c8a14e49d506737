"""Lyapunov spectrum of the Lorenz-96 ring for an ensemble of forcings.

Each member is integrated together with a full set of tangent vectors, which
are orthonormalised at regular intervals (method of Benettin et al.).
"""
import math
import sys
import time

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(3)

MEMBERS = 2048
SITES = 10
DT = 0.01
STEPS_PER_WINDOW = 4


def ring(x, forcing):
    return (x.roll(-1, 1) - x.roll(2, 1)) * x.roll(1, 1) - x + forcing


def ring_tangent(x, v):
    ahead, behind, behind2 = x.roll(-1, 1), x.roll(1, 1), x.roll(2, 1)
    return ((v.roll(-1, 1) - v.roll(2, 1)) * behind[:, :, None]
            + (ahead - behind2)[:, :, None] * v.roll(1, 1) - v)


def rk4(x, v, forcing):
    k1, l1 = ring(x, forcing), ring_tangent(x, v)
    x2, v2 = x + 0.5 * DT * k1, v + 0.5 * DT * l1
    k2, l2 = ring(x2, forcing), ring_tangent(x2, v2)
    x3, v3 = x + 0.5 * DT * k2, v + 0.5 * DT * l2
    k3, l3 = ring(x3, forcing), ring_tangent(x3, v3)
    x4, v4 = x + DT * k3, v + DT * l3
    k4, l4 = ring(x4, forcing), ring_tangent(x4, v4)
    x = x + DT / 6.0 * (k1 + 2 * k2 + 2 * k3 + k4)
    v = v + DT / 6.0 * (l1 + 2 * l2 + 2 * l3 + l4)
    return x, v


def orthonormalise(v):
    q, r = torch.linalg.qr(v)
    growth = r.diagonal(dim1=1, dim2=2).abs()
    return q, growth


def window(x, v, forcing):
    for _ in range(STEPS_PER_WINDOW):
        x, v = rk4(x, v, forcing)
    q, growth = orthonormalise(v)
    return x, q, growth.log()


def main():
    budget_s = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    forcing = torch.linspace(4.0, 12.0, MEMBERS, device=device, dtype=torch.float64)[:, None]
    x = forcing + 0.1 * torch.randn(MEMBERS, SITES, device=device, dtype=torch.float64)
    v = torch.eye(SITES, device=device, dtype=torch.float64).repeat(MEMBERS, 1, 1)
    total = torch.zeros(MEMBERS, SITES, device=device, dtype=torch.float64)

    start = time.perf_counter()
    windows = 0
    while time.perf_counter() - start < budget_s:
        for _ in range(5):
            x, v, logs = window(x, v, forcing)
            total += logs
            windows += 1
        if device == "cuda":
            torch.cuda.synchronize()

    spectrum = total / (windows * STEPS_PER_WINDOW * DT)
    leading = spectrum[:, 0]
    positive = (spectrum > 0).sum(1).double().mean().item()
    assert math.isfinite(positive)
    print(f"done: {windows} windows, largest exponent {leading.max().item():.3f}, "
          f"{positive:.2f} positive on average")


if __name__ == "__main__":
    main()
