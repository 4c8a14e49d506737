"""Heat in a glacier cross section: implicit steps of an anisotropic diffusion equation."""
import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

NX, NZ = 190, 90
STEPS = 100
DT = 4.0


def conductivity():
    rng = np.random.default_rng(12)
    z = np.linspace(0, 1, NZ)[:, None]
    x = np.linspace(0, 1, NX)[None, :]
    k = 1.0 + 0.5 * np.sin(6 * x) * z
    for _ in range(25):
        cx, cz = rng.random(2)
        k += 0.3 * np.exp(-((x - cx) ** 2 + (z - cz) ** 2) / 0.004)
    return k


def operator(k):
    n = NX * NZ
    idx = np.arange(n).reshape(NZ, NX)
    rows, cols, vals = [], [], []
    for a, b, ka, kb in ((idx[:, :-1], idx[:, 1:], k[:, :-1], k[:, 1:]),
                         (idx[:-1], idx[1:], 0.4 * k[:-1], 0.4 * k[1:])):
        mean = (2 * ka * kb / (ka + kb)).ravel()
        a, b = a.ravel(), b.ravel()
        rows += [a, b, a, b]
        cols += [b, a, a, b]
        vals += [mean, mean, -mean, -mean]
    lap = sp.csc_matrix((np.concatenate(vals), (np.concatenate(rows), np.concatenate(cols))), (n, n))
    return (sp.identity(n, format="csc") - DT * lap).tocsc()


def surface(step):
    season = np.sin(2 * np.pi * step / 36)
    return -8 + 7 * season + 2 * np.cos(np.linspace(0, 9, NX) + 0.05 * step)


def strain_heat(t):
    u = np.gradient(t, axis=0)
    v = np.gradient(t, axis=1)
    for _ in range(40):
        u = 0.98 * u + 0.005 * (np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(v, 1, 1) + np.roll(v, -1, 1))
        v = 0.98 * v + 0.005 * (np.roll(v, 1, 0) + np.roll(v, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1))
    return 1e-3 * np.exp(0.05 * np.minimum(t, 0)) * (1 + np.hypot(u, v))


def main():
    a = operator(conductivity())
    t = np.full((NZ, NX), -6.0)
    warmest = []
    for step in range(STEPS):
        rhs = t + DT * strain_heat(t)
        rhs[0] += DT * (surface(step) - t[0])
        rhs[-1] += DT * 0.02
        t = spla.spsolve(a, rhs.ravel()).reshape(NZ, NX)
        warmest.append(t.max())
    print(f"mean temperature {t.mean():.6f}, warmest {max(warmest):.4f}, bed {t[-1].mean():.5f}")


if __name__ == "__main__":
    main()
