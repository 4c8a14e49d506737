"""Choice of the margin for a support vector classifier of urinary crystals."""
import warnings

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

warnings.filterwarnings("ignore")
CRYSTALS = 4200
SHAPE_FEATURES = 24


def crystals(rng):
    kind = rng.integers(0, 3, CRYSTALS)
    centres = rng.normal(0, 0.55, (3, SHAPE_FEATURES))
    features = centres[kind] + rng.normal(0, 1.0, (CRYSTALS, SHAPE_FEATURES))
    features[:, 0] *= 40.0
    features[:, 1] = features[:, 1] ** 2
    return features, kind


def classifier(margin):
    return make_pipeline(
        StandardScaler(),
        SVC(C=margin, gamma=0.02, cache_size=400, probability=True, random_state=0),
    )


def main():
    rng = np.random.default_rng(21)
    features, kind = crystals(rng)
    folds = StratifiedKFold(3, shuffle=True, random_state=1)
    results = {}
    for margin in (0.3, 1.0, 3.0):
        hits = []
        confusion = np.zeros((3, 3), int)
        for train, test in folds.split(features, kind):
            model = classifier(margin)
            model.fit(features[train], kind[train])
            guess = model.predict(features[test])
            hits.append(np.mean(guess == kind[test]))
            np.add.at(confusion, (kind[test], guess), 1)
        results[margin] = np.mean(hits)
        recall = np.diag(confusion) / confusion.sum(axis=1)
        print(f"C = {margin}: accuracy {results[margin]:.3f}, recall {recall.round(3)}")
    best = max(results, key=results.get)
    print("chosen margin", best)


if __name__ == "__main__":
    main()
