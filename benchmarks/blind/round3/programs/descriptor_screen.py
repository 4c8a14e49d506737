"""Screen kernel settings for the solvent classifier on unmixed IR spectra.

Every spectrum is a non-negative mixture of a few pure components.  We unmix
with NMF, rescale the loadings and search the SVM settings by cross-validation.
"""
import warnings

import numpy as np
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

warnings.filterwarnings("ignore", category=ConvergenceWarning)  # NMF stops at max_iter

N_SPECTRA = 1500
N_WAVENUMBERS = 420
N_COMPONENTS = 14


def make_spectra(seed=11):
    rng = np.random.default_rng(seed)
    axis = np.linspace(0.0, 1.0, N_WAVENUMBERS)
    pure = np.zeros((N_COMPONENTS, N_WAVENUMBERS))
    for row in pure:
        for centre, width, height in zip(
            rng.uniform(0, 1, 6), rng.uniform(0.008, 0.04, 6), rng.gamma(2.0, 1.0, 6)
        ):
            row += height * np.exp(-0.5 * ((axis - centre) / width) ** 2)
    labels = rng.integers(0, 4, N_SPECTRA)
    base = rng.gamma(1.4, 1.0, (4, N_COMPONENTS))
    loadings = base[labels] * rng.gamma(3.0, 0.4, (N_SPECTRA, N_COMPONENTS))
    spectra = loadings @ pure
    spectra += 0.15 * rng.random(spectra.shape)
    return spectra, labels


def build_model():
    unmix = NMF(
        n_components=N_COMPONENTS,
        init="nndsvda",
        max_iter=160,
        tol=1e-6,
        random_state=0,
    )
    return Pipeline(
        [
            ("unmix", unmix),
            ("scale", StandardScaler()),
            ("svm", SVC(kernel="rbf")),
        ]
    )


def main():
    spectra, labels = make_spectra()
    print(f"{len(spectra)} spectra, {spectra.shape[1]} wavenumbers")

    grid = {
        "svm__C": [0.1, 0.3, 1.0, 3.0],
        "svm__gamma": [0.003, 0.01, 0.03, 0.1],
    }
    folds = StratifiedKFold(n_splits=3, shuffle=True, random_state=5)
    search = GridSearchCV(build_model(), grid, cv=folds, n_jobs=2)
    search.fit(spectra, labels)

    table = search.cv_results_
    order = np.argsort(table["rank_test_score"])[:5]
    for k in order:
        print(f"  {table['mean_test_score'][k]:.3f}  {table['params'][k]}")
    print(f"best accuracy {search.best_score_:.3f}")


if __name__ == "__main__":
    main()
