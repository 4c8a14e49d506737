"""Gray-Scott reaction and diffusion with a record of how ordered the pattern is."""
import os
import shutil
import tempfile

import numpy as np

N = 448
STEPS = 1100
REPORT = 100
SNAPSHOT = 40
DU, DV, FEED, KILL = 0.16, 0.08, 0.035, 0.060


def seed_fields():
    rng = np.random.default_rng(12)
    u = np.ones((N + 2, N + 2))
    v = np.zeros((N + 2, N + 2))
    for _ in range(60):
        y, x = rng.integers(5, N - 15, 2)
        u[y:y + 10, x:x + 10] = 0.5
        v[y:y + 10, x:x + 10] = 0.25
    u += 0.01 * rng.random(u.shape)
    v += 0.01 * rng.random(v.shape)
    return u, v


def wrap(f):
    f[0], f[-1] = f[-2], f[1]
    f[:, 0], f[:, -1] = f[:, -2], f[:, 1]


def laplacian(f, out):
    np.add(f[:-2, 1:-1], f[2:, 1:-1], out=out)
    out += f[1:-1, :-2]
    out += f[1:-1, 2:]
    out -= 4 * f[1:-1, 1:-1]
    return out


def advance(u, v, lu, lv):
    wrap(u)
    wrap(v)
    laplacian(u, lu)
    laplacian(v, lv)
    a, b = u[1:-1, 1:-1], v[1:-1, 1:-1]
    reaction = a * b * b
    a += DU * lu - reaction + FEED * (1 - a)
    b += DV * lv + reaction - (FEED + KILL) * b


def order(v):
    inner = v[1:-1, 1:-1]
    counts, _ = np.histogram(inner, bins=64, range=(0, 0.5))
    p = counts[counts > 0] / counts.sum()
    power = np.abs(np.fft.rfft2(inner - inner.mean())) ** 2
    ky = np.abs(np.fft.fftfreq(N))[:, None]
    kx = np.fft.rfftfreq(N)[None, :]
    scale = (power * np.hypot(ky, kx)).sum() / power.sum()
    return -(p * np.log(p)).sum(), scale


def main():
    folder = tempfile.mkdtemp(prefix="gray_scott_")
    u, v = seed_fields()
    lu, lv = np.empty((N, N)), np.empty((N, N))
    try:
        for step in range(1, STEPS + 1):
            advance(u, v, lu, lv)
            entropy, scale = order(v)
            if step % REPORT == 0:
                print("step %4d  entropy %.4f  wave number %.4f" % (step, entropy, scale))
            if step % SNAPSHOT == 0:
                np.savez_compressed(os.path.join(folder, f"state_{step:05d}.npz"), u=u, v=v)
        print("snapshots", len(os.listdir(folder)))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
