"""How strongly should a spam filter be regularised? Cross validation over C on short messages."""
import os
import random
import shutil
import tempfile

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import Pipeline

MESSAGES = 2400
GRID = [0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0]


def write_messages(path):
    rnd = random.Random(1234)
    letters = "etaoinshrdlucmfwypvbgk"
    lexicon = ["".join(rnd.choice(letters) for _ in range(rnd.randint(2, 9))) for _ in range(3000)]
    bait = ["".join(rnd.choice(letters) for _ in range(6)) for _ in range(60)]
    with open(path, "w") as f:
        for _ in range(MESSAGES):
            spam = rnd.random() < 0.4
            words = rnd.choices(lexicon, k=rnd.randint(40, 120))
            for _ in range(rnd.randint(1, 4)):
                if spam or rnd.random() < 0.25:
                    words[rnd.randrange(len(words))] = rnd.choice(bait)
            f.write(f"{'spam' if spam else 'ham'}\t{' '.join(words)}\n")


def read_messages(path):
    text, flag = [], []
    with open(path) as f:
        for line in f:
            kind, body = line.rstrip("\n").split("\t", 1)
            text.append(body)
            flag.append(kind == "spam")
    return np.array(text, dtype=object), np.array(flag, dtype=int)


def filter_for(c, scratch):
    return Pipeline([
        ("grams", TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), min_df=3, sublinear_tf=True)),
        ("clf", LogisticRegression(C=c, max_iter=200)),
    ])


def main():
    scratch = tempfile.mkdtemp(prefix="spam_")
    path = os.path.join(scratch, "messages.tsv")
    write_messages(path)
    text, flag = read_messages(path)
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    for c in GRID:
        score = cross_val_score(filter_for(c, scratch), text, flag, cv=folds, scoring="roc_auc", n_jobs=2)
        print(f"C {c:7.2f} AUC {score.mean():.4f} +- {score.std():.4f}", flush=True)
    shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
