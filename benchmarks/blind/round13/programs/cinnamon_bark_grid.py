"""Tell true cinnamon from cassia by near-infrared spectra of ground bark."""
import numpy as np
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

BANDS = 700
SAMPLES = 1500


def make_spectra(seed):
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, SAMPLES)
    wave = np.linspace(0, 1, BANDS)
    base = np.cumsum(rng.normal(0, 0.02, (SAMPLES, BANDS)), axis=1)
    spectra = base + rng.normal(0, 0.05, (SAMPLES, BANDS))
    for peak, strength in ((0.22, 0.8), (0.47, 0.6), (0.71, 0.9)):
        amount = strength * (1 + 0.3 * kind) * rng.lognormal(0, 0.2, SAMPLES)
        spectra += amount[:, None] * np.exp(-((wave - peak) ** 2) / 0.0008)
    return spectra, kind


def build():
    steps = [
        ("scale", StandardScaler()),
        ("pca", PCA(n_components=40, svd_solver="full")),
        ("svc", SVC()),
    ]
    return Pipeline(steps)


def main():
    spectra, kind = make_spectra(17)
    grid = {
        "svc__C": [0.3, 1.0, 3.0, 10.0, 30.0, 100.0],
        "svc__gamma": [0.001, 0.003, 0.01, 0.03],
    }
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(build(), grid, cv=folds, scoring="accuracy")
    search.fit(spectra, kind)
    table = search.cv_results_["mean_test_score"].reshape(6, 4)
    for c, row in zip(grid["svc__C"], table):
        print(f"C {c:6.1f}: " + " ".join(f"{score:.3f}" for score in row))
    print("best", search.best_params_, f"{search.best_score_:.3f}")


if __name__ == "__main__":
    main()
