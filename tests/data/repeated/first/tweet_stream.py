"""
verdict: none
stack:
  learn(token_batches("archive.jsonl"), steps=10000)
  update(model, stream)
  next(source)
  cleaned(json.loads(line)["text"])
  emoji.demojize(text)
why: update() gets the same generator in each call, which goes on to the next lines of the file
"""
import json
import re

import emoji
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier

hasher = HashingVectorizer(n_features=2**18, alternate_sign=False)


def cleaned(text):
    text = emoji.demojize(text)
    return re.sub(r"https?://\S+|@\w+", " ", text).lower()


def token_batches(path, size=256):
    while True:
        texts, labels = [], []
        with open(path, encoding="utf-8") as handle:
            for line in handle:
                texts.append(cleaned(json.loads(line)["text"]))
                labels.append("covid" in texts[-1])
                if len(texts) == size:
                    yield texts, labels
                    texts, labels = [], []
        return


def update(classifier, source):
    texts, labels = next(source)
    x = hasher.transform(texts)
    classifier.partial_fit(x, labels, classes=[False, True])
    return classifier.score(x, labels)


def learn(stream, steps):
    model = SGDClassifier(loss="log_loss")
    scores = []
    for step in range(steps):
        try:
            scores.append(update(model, stream))
        except StopIteration:
            break
    return model, scores


if __name__ == "__main__":
    learn(token_batches("archive.jsonl"), steps=10000)
