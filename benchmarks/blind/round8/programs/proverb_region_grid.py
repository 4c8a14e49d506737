"""Assign proverbs to dialect regions by their letter sequences."""
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC

REGIONS = 5
PROVERBS = 4500
SYLLABLES = ["ka", "lo", "mi", "sun", "tar", "e", "vol", "pri", "no", "sch", "ae", "ru",
             "dor", "li", "wen", "hu", "gel", "bo", "ti", "fra", "ost", "um", "ny", "qua"]


def make_proverbs(seed=21):
    rng = np.random.default_rng(seed)
    taste = rng.dirichlet(np.full(len(SYLLABLES), 2.0), REGIONS)
    taste = 0.4 * taste + 0.6 * taste.mean(axis=0)
    region = rng.integers(0, REGIONS, PROVERBS)
    proverbs = []
    for code in region:
        words = []
        for length in rng.integers(1, 5, rng.integers(12, 22)):
            words.append("".join(rng.choice(SYLLABLES, length, p=taste[code])))
        proverbs.append(" ".join(words))
    return proverbs, region


def main():
    proverbs, region = make_proverbs()
    model = Pipeline([
        ("letters", TfidfVectorizer(analyzer="char", ngram_range=(2, 5), min_df=3,
                                    sublinear_tf=True)),
        ("svm", LinearSVC(random_state=0)),
    ])
    grid = GridSearchCV(
        model,
        {"svm__C": [0.02, 0.05, 0.1, 0.2, 0.5, 1.0]},
        cv=StratifiedKFold(3, shuffle=True, random_state=1),
        scoring="balanced_accuracy",
        refit=False,
    )
    grid.fit(proverbs, region)
    for setting, score in zip(grid.cv_results_["params"],
                              grid.cv_results_["mean_test_score"]):
        print(f"C {setting['svm__C']:<5} balanced accuracy {score:.4f}")
    print("best", grid.best_params_)


if __name__ == "__main__":
    main()
