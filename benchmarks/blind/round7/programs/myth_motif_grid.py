"""Tune a classifier of folk myths by motif, from latent semantic features."""
import tempfile
import warnings

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer

warnings.filterwarnings("ignore")
MYTHS, WORDS, VOCABULARY, MOTIFS = 3000, 110, 9000, 8


def tell_myths(rng):
    """Every motif prefers some words of a common, Zipf-like vocabulary."""
    syllables = ["ka", "ru", "mi", "to", "ne", "sha", "lo", "ve", "dri", "ax", "un", "pe"]
    lexicon = ["".join(rng.choice(syllables, 4)) + str(i % 7) for i in range(VOCABULARY)]
    base = 1.0 / np.arange(1, VOCABULARY + 1) ** 0.8
    tilt = np.exp(rng.normal(0, 0.45, (MOTIFS, VOCABULARY)))
    motif = rng.integers(0, MOTIFS, MYTHS)
    texts = []
    for m in motif:
        p = base * tilt[m]
        edges = np.cumsum(p / p.sum())
        picks = np.minimum(np.searchsorted(edges, rng.random(WORDS)), VOCABULARY - 1)
        texts.append(" ".join(lexicon[i] for i in picks))
    return texts, motif


def main():
    rng = np.random.default_rng(17)
    texts, motif = tell_myths(rng)
    with tempfile.TemporaryDirectory() as folder:
        pipeline = Pipeline([
            ("tfidf", TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)),
            ("lsa", TruncatedSVD(n_components=90, n_iter=4, random_state=0)),
            ("norm", Normalizer()),
            ("clf", RidgeClassifier()),
        ])
        search = GridSearchCV(
            pipeline,
            {"clf__alpha": [0.1, 1.0, 3.0, 10.0, 30.0]},
            cv=StratifiedKFold(3, shuffle=True, random_state=1), refit=False)
        search.fit(texts, motif)
    for alpha, score in zip(search.cv_results_["param_clf__alpha"],
                            search.cv_results_["mean_test_score"]):
        print(f"alpha {float(alpha):7.2f}: accuracy {score:.4f}")


if __name__ == "__main__":
    main()
