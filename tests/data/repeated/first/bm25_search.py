"""
verdict: same
stack:
  evaluate("abstracts.jsonl", "topics.json")
  ranker.rank(topic["title"])
  self.document_frequency()
  set(words(doc))
call: self.document_frequency()
loop: for topic in topics
why: the document frequencies of the fixed collection are counted again for each topic
"""
import json
import math
import re
from collections import Counter
from dataclasses import dataclass, field


def words(text):
    return re.findall(r"[a-z0-9]+", text.lower())


@dataclass
class Ranker:
    docs: list = field(default_factory=list)
    k1: float = 1.2
    b: float = 0.75

    def document_frequency(self):
        df = Counter()
        for doc in self.docs:
            df.update(set(words(doc)))
        return df

    def rank(self, query, top=100):
        df = self.document_frequency()
        n = len(self.docs)
        idf = {w: math.log(1 + (n - df[w] + 0.5) / (df[w] + 0.5)) for w in words(query)}
        mean = sum(map(len, self.docs)) / n
        scores = []
        for k, body in enumerate(self.docs):
            norm = self.k1 * (1 - self.b + self.b * len(body) / mean)
            tf = {w: body.lower().count(w) for w in idf}
            scores.append((sum(idf[w] * tf[w] / (tf[w] + norm) for w in idf), k))
        return sorted(scores, reverse=True)[:top]


def evaluate(collection, topic_file):
    with open(collection) as handle:
        ranker = Ranker(docs=[json.loads(line)["abstract"] for line in handle])
    with open(topic_file) as handle:
        topics = json.load(handle)
    hits = 0
    for topic in topics:
        found = ranker.rank(topic["title"])
        hits += any(k in topic["relevant"] for _, k in found)
    print(hits / len(topics))


if __name__ == "__main__":
    evaluate("abstracts.jsonl", "topics.json")
