"""Hyper-parameter search: joblib with 2 workers, each fit takes about 40 s; the main process waits."""
import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: E402
from joblib import Parallel, delayed  # noqa: E402
from sklearn.linear_model import SGDClassifier  # noqa: E402

ALPHAS = [1e-5, 1e-4, 1e-3, 1e-2]


def make_data(n=4000, d=40):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, d))
    return x, (x[:, :5].sum(1) + 0.3 * rng.standard_normal(n) > 0).astype(int)


def fit(alpha, x, y, seconds):
    model = SGDClassifier(alpha=alpha, random_state=0)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        model.partial_fit(x[:3000], y[:3000], classes=[0, 1])
    return alpha, model.score(x[3000:], y[3000:])


def main():
    x, y = make_data()
    scores = []
    for i in range(100):  # quick look at single batches
        model = SGDClassifier(random_state=i).fit(x[i * 30:i * 30 + 300], y[i * 30:i * 30 + 300])
        scores.append(model.score(x[3000:], y[3000:]))
        time.sleep(0.1)
    print(f"baseline {np.mean(scores):.3f}", flush=True)
    results = Parallel(n_jobs=2)(delayed(fit)(a, x, y, 40) for a in ALPHAS)
    best = max(results, key=lambda r: r[1])
    print("best alpha", best, flush=True)
    print("refit", fit(best[0], x, y, 20), flush=True)


if __name__ == "__main__":
    main()
