"""Thaw below a heated building: implicit heat conduction on a square of ground.

Backward Euler, five-point stencil, conductivity that varies from cell to cell.
Between steps the surface exchanges heat with the air and the snow settles.
"""
import numpy as np
from scipy import ndimage, sparse
from scipy.sparse.linalg import spsolve

N = 84
STEPS = 200
DT = 3600.0 * 12
DX = 0.25


def soil(seed=8):
    rng = np.random.default_rng(seed)
    grain = ndimage.gaussian_filter(rng.standard_normal((N, N)), 3.0)
    conductivity = 1.4 * np.exp(1.5 * grain)
    capacity = 2.2e6 * (1.0 + 0.3 * ndimage.gaussian_filter(rng.random((N, N)), 2.0))
    return conductivity, capacity


def cell(i, j):
    return i * N + j


def conduction_matrix(conductivity, capacity):
    """I + dt * L as a sparse matrix; the outer edge lets no heat through."""
    A = sparse.csr_matrix((N * N, N * N))
    for i in range(N):
        for j in range(N):
            here = cell(i, j)
            weight = DT / (capacity[i, j] * DX * DX)
            centre = 1.0
            for di, dj in ((-1, 0), (1, 0), (0, -1), (0, 1)):
                a, b = i + di, j + dj
                if not (0 <= a < N and 0 <= b < N):
                    continue
                k = 2.0 / (1.0 / conductivity[i, j] + 1.0 / conductivity[a, b])
                A[here, cell(a, b)] = -weight * k
                centre += weight * k
            A[here, here] = centre
    return A


def surface_exchange(ground, snow, step):
    """Air temperature of the season, damped by the snow, as a flux into row 0."""
    season = -6.0 + 14.0 * np.sin(2 * np.pi * step / 730.0)
    shelter = np.exp(-snow / 0.4)
    ground[0] += 0.12 * shelter * (season - ground[0])
    ground[0, N // 3 : 2 * N // 3] += 0.25 * (18.0 - ground[0, N // 3 : 2 * N // 3])
    return ground


def settle_snow(snow, step, rng):
    fall = rng.gamma(0.3, 0.02, N) if (step % 730) > 365 else 0.0
    blown = ndimage.gaussian_filter1d(snow + fall, 4.0, mode="nearest")
    return np.clip(blown * 0.997, 0.0, 1.5)


def thaw_depths(ground, rng, draws=1800):
    """Depth of the zero-degree line when the sensors are off by a little."""
    shifted = ground[None] + rng.normal(0.0, 0.3, (draws, 1, N)).astype(np.float32)
    frozen = shifted < 0.0
    depth = np.where(frozen.any(axis=1), frozen.argmax(axis=1), N) * DX
    return np.quantile(depth, [0.1, 0.5, 0.9], axis=0)


def main():
    conductivity, capacity = soil()
    A = conduction_matrix(conductivity, capacity)
    print(f"{A.shape[0]} cells, {A.nnz} entries")

    rng = np.random.default_rng(2)
    ground = np.full((N, N), -2.0)
    snow = np.full(N, 0.3)
    history = []
    for step in range(STEPS):
        snow = settle_snow(snow, step, rng)
        ground = surface_exchange(ground, snow, step)
        ground = spsolve(A, ground.ravel()).reshape(N, N)
        history.append(thaw_depths(ground.astype(np.float32), rng))

    history = np.array(history)
    house = history[:, :, N // 3 : 2 * N // 3].mean(axis=2)
    print("thaw depth under the house [m], 10/50/90 %:", house[-1].round(2))
    print("deepest at any place:", history[:, 1].max(), "m")
    print(f"mean temperature {ground.mean():.4f}, warmest {ground.max():.3f}")


if __name__ == "__main__":
    main()
