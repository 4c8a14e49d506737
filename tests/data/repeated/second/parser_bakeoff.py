"""
verdict: set
stack:
  compare(MODELS, read_documents("news.jsonl"))
  NLP(document["text"])
call: NLP(document["text"])
loop: for name, make in candidates.items()
why: each classifier goes through the same documents, which are parsed by the same pipeline again
"""
import json

import numpy as np
import spacy
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

NLP = spacy.load("en_core_web_lg")
MODELS = {
    "logistic": lambda: LogisticRegression(max_iter=2000),
    "bayes": GaussianNB,
    "boosting": GradientBoostingClassifier,
}
TAGS = ("NOUN", "VERB", "ADJ", "ADV", "PROPN", "PRON", "NUM")


def read_documents(path):
    with open(path) as handle:
        return [json.loads(line) for line in handle]


def style(parsed):
    tags = [token.pos_ for token in parsed]
    lengths = [len(sent) for sent in parsed.sents]
    shares = [tags.count(t) / max(len(tags), 1) for t in TAGS]
    return shares + [np.mean(lengths), np.std(lengths), len(parsed.ents)]


def compare(candidates, documents):
    scores = {}
    for name, make in candidates.items():
        rows, labels = [], []
        for document in documents:
            rows.append(style(NLP(document["text"])))
            labels.append(document["outlet"])
        half = len(rows) // 2
        model = make().fit(rows[:half], labels[:half])
        scores[name] = model.score(rows[half:], labels[half:])
    return scores


if __name__ == "__main__":
    print(compare(MODELS, read_documents("news.jsonl")))
