"""Ring left by an evaporating drop of coffee: radial flow carries grains to the pinned rim."""
import logging

import numpy as np

SIDE = 420
STEPS = 2400
REPORT = 40
DT = 0.004

log = logging.getLogger("drop")


def drop_shape():
    yy, xx = np.mgrid[0:SIDE, 0:SIDE]
    y = (yy - SIDE / 2) / (SIDE / 2.3)
    x = (xx - SIDE / 2) / (SIDE / 2.3)
    radius = np.hypot(x, y)
    angle = np.arctan2(y, x)
    inside = radius < 1.0 + 0.03 * np.cos(5 * angle)
    height = np.where(inside, 1.0 - radius ** 2, 0.0).clip(0.0)
    return x, y, radius, inside, height


def flow(draw, east, north, left):
    speed = np.minimum(draw / left, 2.5)
    return speed * east, speed * north


def advect(grains, u, v, spread, inside):
    dx = 2.3 / SIDE * 2
    flux_x = np.where(u > 0, grains, np.roll(grains, -1, 1)) * u
    flux_y = np.where(v > 0, grains, np.roll(grains, -1, 0)) * v
    change = -(flux_x - np.roll(flux_x, 1, 1) + flux_y - np.roll(flux_y, 1, 0)) / dx
    smooth = np.roll(grains, 1, 0) + np.roll(grains, -1, 0) + np.roll(grains, 1, 1) + np.roll(grains, -1, 1)
    change += spread * (smooth - 4.0 * grains) / dx ** 2
    return np.where(inside, np.maximum(grains + DT * 0.4 * change, 0.0), 0.0)


def settle(grains, deposit, rate):
    moved = DT * rate * grains
    return grains - moved, deposit + moved


def profile(deposit, radius):
    index = (radius * 50).astype(int).clip(0, 59)
    return np.bincount(index.ravel(), deposit.ravel(), 60) / np.bincount(index.ravel(), minlength=60).clip(1)


def main():
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    x, y, radius, inside, height = drop_shape()
    rng = np.random.default_rng(3)
    grains = np.where(inside, height * (1.0 + 0.1 * rng.standard_normal((SIDE, SIDE))), 0.0).clip(0.0)
    deposit = np.zeros((SIDE, SIDE))
    draw = 0.25 * radius / np.sqrt(np.maximum(1.0 - radius ** 2, 0.02))
    east, north = x / (radius + 1e-6), y / (radius + 1e-6)
    rate = 0.01 + 1.4 * np.exp(-((radius - 0.97) / 0.03) ** 2)
    for n in range(STEPS):
        left = 1.0 - 0.9 * n / STEPS
        u, v = flow(draw, east, north, left)
        grains = advect(grains, u, v, 2e-4, inside)
        grains, deposit = settle(grains, deposit, rate)
        if n % REPORT == 0:
            coarse = deposit[::3, ::3]
            log.debug("deposit at step %d\n%s" % (n, np.array2string(coarse, precision=6, threshold=coarse.size)))
        if n % (STEPS // 4) == 0:
            log.info("step %d: floating %.4f settled %.4f", n, grains.sum(), deposit.sum())
    ring = profile(deposit, radius)
    print(f"ring at radius {np.argmax(ring) / 50:.2f}, contrast {ring.max() / ring[:40].mean():.3f}")
    print(f"settled {deposit.sum():.3f}, floating {grains.sum():.3f}")


if __name__ == "__main__":
    main()
