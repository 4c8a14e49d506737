"""Aroma class of hop cones from gas chromatograms: kernel PCA and a linear classifier."""
import os
import tempfile
import warnings

import numpy as np
from sklearn.decomposition import KernelPCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

CONES, PEAKS, AROMAS = 2400, 60, 4


def chromatograms(seed):
    rng = np.random.default_rng(seed)
    aroma = rng.integers(0, AROMAS, CONES)
    profile = rng.gamma(2.0, 1.0, (AROMAS, PEAKS))
    strength = rng.lognormal(0.0, 0.4, (CONES, 1))
    mix = rng.dirichlet(np.full(AROMAS, 0.6), CONES) * 0.6
    mix[np.arange(CONES), aroma] += 0.4
    x = strength * (mix @ profile) * rng.lognormal(0, 0.5, (CONES, PEAKS))
    return np.log1p(x), aroma


def main():
    warnings.filterwarnings("ignore")
    x, y = chromatograms(33)
    with tempfile.TemporaryDirectory() as folder:
        pipe = Pipeline([
            ("scale", StandardScaler()),
            ("kpca", KernelPCA(n_components=60, kernel="rbf", gamma=0.01,
                               eigen_solver="dense")),
            ("clf", LogisticRegression(max_iter=400)),
        ])
        grid = {"clf__C": [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0]}
        folds = StratifiedKFold(3, shuffle=True, random_state=1)
        search = GridSearchCV(pipe, grid, cv=folds, scoring="accuracy", n_jobs=1)
        search.fit(x, y)
        scores = search.cv_results_["mean_test_score"]
        np.savetxt(os.path.join(folder, "scores.csv"), scores, delimiter=",")
    print(f"cones {CONES}, peaks {PEAKS}, aroma classes {AROMAS}")
    for params, score in zip(search.cv_results_["params"],
                             search.cv_results_["mean_test_score"]):
        print(f"C {params['clf__C']:6.2f}  accuracy {score:.4f}")
    print(f"best C {search.best_params_['clf__C']}, accuracy {search.best_score_:.4f}")


if __name__ == "__main__":
    main()
