"""Period search in survey light curves with two processes."""
import multiprocessing as mp
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

STARS = 18_000
EPOCHS = 200
FREQS = np.linspace(0.05, 4.0, 280)
LIMIT = 0.25


def survey(seed):
    rng = np.random.default_rng(seed)
    t = np.sort(rng.uniform(0, 90, (STARS, EPOCHS)), axis=1)
    freq = rng.choice(FREQS, STARS)
    amp = np.where(rng.random(STARS) < 0.3, rng.uniform(0.5, 2.0, STARS), 0.0)
    mag = amp[:, None] * np.sin(2 * np.pi * freq[:, None] * t + 1.0)
    mag += rng.normal(0, 1.0, mag.shape)
    return t, mag


def periodogram(t, y):
    y = y - y.mean()
    arg = 2 * np.pi * np.outer(FREQS, t)
    c = np.cos(arg)
    s = np.sin(arg)
    yc = c @ y
    ys = s @ y
    return (yc ** 2 / (c * c).sum(axis=1) + ys ** 2 / (s * s).sum(axis=1)) / (y @ y)


def search(stars, t, mag, found, tally, lock):
    for i in stars:
        power = periodogram(t[i], mag[i])
        k = int(power.argmax())
        with lock:
            tally["searched"] = tally["searched"] + 1
            if power[k] > LIMIT:
                tally["variable"] = tally["variable"] + 1
            found.append((i, k, float(power[k])))


def main():
    t, mag = survey(2013)
    with mp.Manager() as manager:
        found = manager.list()
        tally = manager.dict(searched=0, variable=0)
        lock = manager.Lock()
        workers = [mp.Process(target=search,
                              args=(range(w, STARS, 2), t, mag, found, tally, lock))
                   for w in range(2)]
        for w in workers:
            w.start()
        for w in workers:
            w.join()
        rows = sorted(found[:])
        counts = dict(tally)
    best = np.array([r[2] for r in rows])
    peak = np.bincount([r[1] for r in rows], minlength=len(FREQS))
    print("searched", counts["searched"], "variable", counts["variable"])
    print(f"mean power {best.mean():.7f}  top {best.max():.7f}  busiest bin {peak.argmax()}")


if __name__ == "__main__":
    main()
