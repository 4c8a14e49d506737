"""Choose which lifeboat call reports an expert should read next (active learning)."""
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

REPORTS = 6000
CAUSES = 6
ROUNDS = 13
PER_ROUND = 40


def make_reports(seed):
    rng = np.random.default_rng(seed)
    letters = np.array(list("abcdefghiklmnoprstuvw"))
    words = np.array(["".join(rng.choice(letters, rng.integers(4, 10))) for _ in range(5000)])
    cause = rng.integers(0, CAUSES, REPORTS)
    reports = []
    for c in cause:
        common = (5000 * rng.random(45) ** 2).astype(int)
        typical = rng.integers(0, 250, 9) + 250 * c + 2000
        picks = rng.permutation(np.concatenate([common, typical]))
        reports.append(" ".join(words[picks]))
    return reports, cause


def features(reports):
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, max_features=20000)
    return vectorizer.fit_transform(reports)


def learn(reports, cause, known):
    x = features(reports)
    model = LogisticRegression(C=10.0, max_iter=200)
    model.fit(x[known], cause[known])
    chance = model.predict_proba(x)
    return chance


def main():
    reports, cause = make_reports(14)
    rng = np.random.default_rng(1)
    known = rng.choice(REPORTS, 60, replace=False).tolist()
    for turn in range(ROUNDS):
        chance = learn(reports, cause, known)
        hidden = np.setdiff1d(np.arange(REPORTS), known)
        accuracy = (chance[hidden].argmax(1) == cause[hidden]).mean()
        ordered = np.sort(chance[hidden], axis=1)
        margin = ordered[:, -1] - ordered[:, -2]
        if turn % 3 == 0:
            print(f"round {turn}: {len(known)} read, accuracy {accuracy:.3f}", flush=True)
        known.extend(hidden[np.argsort(margin, kind="stable")[:PER_ROUND]].tolist())
    print(f"reports read {len(known)}")


if __name__ == "__main__":
    main()
