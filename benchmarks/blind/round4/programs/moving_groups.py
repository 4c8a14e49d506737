"""Trace stars back in time and count close pairs at every epoch."""
import numpy as np
from scipy.spatial import cKDTree

STARS = 400_000
EPOCHS = 24
PC_PER_MYR = 1.0227


def main():
    rng = np.random.default_rng(2021)
    group = rng.integers(0, 60, STARS)
    centre = rng.uniform(-400, 400, (60, 3))
    drift = rng.normal(0, 18, (60, 3))
    loose = rng.random(STARS) < 0.7
    pos = np.where(loose[:, None], rng.uniform(-400, 400, (STARS, 3)),
                   centre[group] + rng.normal(0, 12, (STARS, 3)))
    vel = np.where(loose[:, None], rng.normal(0, 25, (STARS, 3)),
                   drift[group] + rng.normal(0, 1.0, (STARS, 3)))

    curve = []
    for epoch in range(EPOCHS):
        age = 0.4 * epoch
        now = pos - PC_PER_MYR * age * vel
        tree = cKDTree(now)
        near, _ = tree.query(now, k=4, workers=2)
        curve.append((age, float(np.median(near[:, 3])), float((near[:, 3] < 3.0).mean())))
    curve = np.array(curve)
    members = np.bincount(group[~loose], minlength=60)
    speed = np.linalg.norm(drift, axis=1)
    slow = np.argsort(speed)[:3]
    tight = int(curve[:, 2].argmax())
    print("epochs", len(curve), "tightest at %.1f Myr" % curve[tight, 0])
    print("slowest groups", ", ".join(f"{g}: {members[g]} stars, {speed[g]:.2f} km/s" for g in slow))
    print("median distance %.5f pc, share within 3 pc %.6f" % tuple(curve[tight, 1:]))


if __name__ == "__main__":
    main()
