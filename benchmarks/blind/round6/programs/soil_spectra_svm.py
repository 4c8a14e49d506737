"""Classify soil samples as carbon rich or carbon poor from near-infrared spectra."""
import numpy as np
from scipy.ndimage import gaussian_filter1d
from sklearn.decomposition import PCA
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

N_SAMPLES = 3600
N_BANDS = 350
C_GRID = (0.3, 1.0, 3.0, 10.0, 30.0)


def make_spectra(rng):
    bands = np.linspace(0.0, 1.0, N_BANDS)
    carbon = rng.gamma(2.0, 1.0, N_SAMPLES)
    clay = rng.normal(0.0, 1.0, N_SAMPLES)
    water = rng.normal(0.0, 1.0, N_SAMPLES)
    spectra = 2.0 * gaussian_filter1d(rng.normal(size=(N_SAMPLES, N_BANDS)), 6, axis=1)
    for amount, centre, width in ((carbon, 0.35, 0.05), (clay, 0.7, 0.03), (water, 0.5, 0.1)):
        spectra -= 0.25 * amount[:, None] * np.exp(-(((bands - centre) / width) ** 2))
    noisy = carbon + rng.normal(0.0, 0.5, N_SAMPLES)
    return spectra, (noisy > np.median(noisy)).astype(int)


def new_model(c):
    return SVC(
        C=c,
        gamma="scale",
        probability=True,
        cache_size=500,
        random_state=0,
    )


def cross_validate(x, y, c):
    folds = StratifiedKFold(3, shuffle=True, random_state=1)
    scores = []
    for fit, held in folds.split(x, y):
        model = new_model(c).fit(x[fit], y[fit])
        scores.append(roc_auc_score(y[held], model.decision_function(x[held])))
    return float(np.mean(scores))


def main():
    rng = np.random.default_rng(12)
    spectra, label = make_spectra(rng)
    x_train, x_test, y_train, y_test = train_test_split(
        spectra, label, test_size=600, stratify=label, random_state=3
    )
    scaler = StandardScaler().fit(x_train)
    pca = PCA(40, whiten=True, random_state=0).fit(scaler.transform(x_train))
    z_train = pca.transform(scaler.transform(x_train))
    z_test = pca.transform(scaler.transform(x_test))

    table = {c: cross_validate(z_train, y_train, c) for c in C_GRID}
    for c, auc in table.items():
        print(f"C={c:<5} cross-validated AUC {auc:.4f}")
    best = max(table, key=table.get)
    final = new_model(best).fit(z_train, y_train)
    print(f"best C={best}, test accuracy {accuracy_score(y_test, final.predict(z_test)):.3f}")


if __name__ == "__main__":
    main()
