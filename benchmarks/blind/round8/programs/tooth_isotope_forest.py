"""How many trees does a forest need to place teeth by their isotopes?"""
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold

TEETH = 1900
ISOTOPES = 32
VALLEYS = 6
SIZES = [50, 100, 150, 200, 250, 300]


def make_teeth(seed=14):
    rng = np.random.default_rng(seed)
    valley = rng.integers(0, VALLEYS, TEETH)
    centre = 0.7 * rng.standard_normal((VALLEYS, ISOTOPES))
    diet = rng.standard_normal((TEETH, 4)) @ rng.standard_normal((4, ISOTOPES))
    x = centre[valley] + 0.5 * diet + rng.standard_normal((TEETH, ISOTOPES))
    return x, valley


def main():
    x, valley = make_teeth()
    folds = StratifiedKFold(3, shuffle=True, random_state=2)
    scores = {size: [] for size in SIZES}
    importance = np.zeros(ISOTOPES)
    for fold, (train, test) in enumerate(folds.split(x, valley)):
        for size in SIZES:
            forest = RandomForestClassifier(n_estimators=size, max_features=0.3,
                                            random_state=fold)
            forest.fit(x[train], valley[train])
            guess = forest.predict(x[test])
            scores[size].append(balanced_accuracy_score(valley[test], guess))
        importance += forest.feature_importances_ / folds.get_n_splits()
    for size in SIZES:
        mean, spread = np.mean(scores[size]), np.std(scores[size])
        print(f"{size:4d} trees: balanced accuracy {mean:.4f} +- {spread:.4f}")
    order = np.argsort(importance)[::-1][:5]
    print("most useful isotopes", [int(i) for i in order])


if __name__ == "__main__":
    main()
