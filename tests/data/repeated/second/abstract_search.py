"""
verdict: same
stack:
  evaluate(collection, judged)
  top_k(question, docs)
  vectorise(corpus)
  vectorizer.fit_transform(texts)
call: vectorise(corpus)
loop: for question, relevant in queries
why: the index of the same abstracts is built again for each query
"""
import json

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer


def vectorise(texts):
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    matrix = vectorizer.fit_transform(texts)
    return vectorizer, matrix


def top_k(text, corpus, k=10):
    vectorizer, matrix = vectorise(corpus)
    scores = (matrix @ vectorizer.transform([text]).T).toarray().ravel()
    return np.argsort(-scores)[:k]


def evaluate(docs, queries):
    precision = []
    for question, relevant in queries:
        found = top_k(question, docs)
        precision.append(len(set(found) & set(relevant)) / len(found))
    return float(np.mean(precision))


def main():
    with open("abstracts.json") as handle:
        collection = [entry["abstract"] for entry in json.load(handle)]
    with open("judgements.json") as handle:
        judged = [(j["query"], j["ids"]) for j in json.load(handle)]
    print("P@10 =", evaluate(collection, judged))


if __name__ == "__main__":
    main()
