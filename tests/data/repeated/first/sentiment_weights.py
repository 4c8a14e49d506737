"""
verdict: set
stack:
  tune("reviews.tsv", [0.0, 0.25, 0.5, 1.0, 2.0, 4.0])
  [accuracy(reviews, w) for w in weights]
  accuracy(reviews, w)
  parse_review(text)
  nlp(body.strip())
call: parse_review(text)
loop: for w in weights
why: the parser goes through the same reviews for each weight of the negation
"""
import csv

import spacy

nlp = spacy.load("en_core_web_sm", disable=["ner"])
POSITIVE = {"good", "great", "love", "excellent", "enjoy"}
NEGATIVE = {"bad", "poor", "hate", "awful", "boring"}


def parse_review(body):
    doc = nlp(body.strip())
    return [(t.lemma_.lower(), any(c.dep_ == "neg" for c in t.children)) for t in doc]


def polarity(tokens, weight):
    total = 0.0
    for lemma, negated in tokens:
        sign = (lemma in POSITIVE) - (lemma in NEGATIVE)
        total += -weight * sign if negated else sign
    return total


def accuracy(data, weight):
    right = 0
    for text, label in data:
        tokens = parse_review(text)
        right += (polarity(tokens, weight) > 0) == label
    return right / len(data)


def tune(path, weights):
    with open(path, newline="") as handle:
        reviews = [(r[0], r[1] == "pos") for r in csv.reader(handle, delimiter="\t")]
    scores = [accuracy(reviews, w) for w in weights]
    return weights[max(range(len(scores)), key=scores.__getitem__)]


if __name__ == "__main__":
    print(tune("reviews.tsv", [0.0, 0.25, 0.5, 1.0, 2.0, 4.0]))
