"""Ray tracing through an ice sheet. Deep rays need more steps than shallow ones."""
import math
import multiprocessing as mp


def trace(angle):
    steps = int(120_000 * (angle / 90) ** 3) + 500
    x = z = 0.0
    v = 1500.0
    for _ in range(steps):
        v = 1500.0 + 900.0 * math.exp(-z * 0.01)
        x += math.cos(math.radians(angle)) / v
        z += math.sin(math.radians(angle)) / v
    return x, z, v


def chunk(angles):
    return [trace(a) for a in angles]


if __name__ == "__main__":
    angles = [90 * k / 1400 for k in range(1400)]
    half = len(angles) // 2
    with mp.Pool(2) as pool:
        parts = list(pool.imap(chunk, [angles[k::100] for k in range(100)]))
    out = [r for p in parts for r in p]
    print(len(out), "rays, furthest", max(r[0] for r in out))
