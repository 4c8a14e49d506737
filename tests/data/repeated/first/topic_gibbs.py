"""
verdict: none
stack:
  TopicModel(read_corpus("speeches.txt"), topics=30).run(sweeps=500)
  self.resample(d, words)
  self.conditional(d, w)
  self.word_topic[w] + BETA
why: each sweep goes through the same documents and words, but the counts are changed by the sampler itself
"""
import numpy as np

ALPHA, BETA = 0.1, 0.01


def read_corpus(path):
    vocabulary = {}
    documents = []
    with open(path, encoding="utf-8") as handle:
        for line in handle:
            ids = [vocabulary.setdefault(t, len(vocabulary)) for t in line.lower().split()]
            documents.append(ids)
    return documents, len(vocabulary)


class TopicModel:
    def __init__(self, corpus, topics, seed=0):
        self.documents, size = corpus
        self.rng = np.random.default_rng(seed)
        self.word_topic = np.zeros((size, topics))
        self.doc_topic = np.zeros((len(self.documents), topics))
        self.assigned = [self.rng.integers(topics, size=len(d)) for d in self.documents]
        for d, words in enumerate(self.documents):
            for w, z in zip(words, self.assigned[d]):
                self.count(d, w, z, 1)

    def count(self, doc, word, z, n):
        self.word_topic[word, z] += n
        self.doc_topic[doc, z] += n

    def conditional(self, doc, w):
        p = self.word_topic[w] + BETA
        p = p / (self.word_topic.sum(axis=0) + BETA * len(self.word_topic))
        p *= self.doc_topic[doc] + ALPHA
        return p.cumsum()

    def resample(self, d, tokens):
        for k, w in enumerate(tokens):
            self.count(d, w, self.assigned[d][k], -1)
            c = self.conditional(d, w)
            z = int(np.searchsorted(c, self.rng.random() * c[-1]))
            self.assigned[d][k] = z
            self.count(d, w, z, 1)

    def run(self, sweeps):
        for sweep in range(sweeps):
            for d, words in enumerate(self.documents):
                self.resample(d, words)
        return self.word_topic


if __name__ == "__main__":
    np.save("topics.npy", TopicModel(read_corpus("speeches.txt"), topics=30).run(sweeps=500))
