"""
verdict: same
stack:
  [best_match(c, texts) for c in claims]
  best_match(c, texts)
  index_texts(corpus)
  vectorizer.fit_transform(documents)
call: index_texts(corpus)
loop: for c in claims
why: the tf-idf index of the same corpus is fitted again for each claim
"""
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics.pairwise import linear_kernel


def index_texts(documents):
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    matrix = vectorizer.fit_transform(documents)
    return vectorizer, matrix


def best_match(claim, corpus):
    vectorizer, matrix = index_texts(corpus)
    scores = linear_kernel(vectorizer.transform([claim]), matrix).ravel()
    k = int(scores.argmax())
    return k, float(scores[k])


patents = pd.read_parquet("patents.parquet")
texts = patents["abstract"].fillna("").tolist()
claims = pd.read_csv("claims.csv")["claim"].tolist()

matches = [best_match(c, texts) for c in claims]
out = pd.DataFrame(matches, columns=["row", "score"])
out["patent"] = [patents["number"].iloc[k] for k in out["row"]]
out.to_csv("matches.csv", index=False)
