"""
verdict: set
stack:
  learn(sorted(glob.glob("pubmed/*.xml.gz")), rounds=15)
  sentences(files)
  abstracts(name)
  etree.parse(handle)
call: abstracts(name)
loop: for r in range(rounds)
why: the generator parses the same compressed files again in each round
"""
import glob
import gzip
import re
from xml.etree import ElementTree as etree

import numpy as np


def abstracts(path):
    with gzip.open(path) as handle:
        root = etree.parse(handle).getroot()
    return [node.text or "" for node in root.iter("AbstractText")]


def sentences(names):
    for name in names:
        for text in abstracts(name):
            for sentence in re.split(r"(?<=[.!?])\s+", text):
                tokens = re.findall(r"[a-z]{2,}", sentence.lower())
                if len(tokens) > 3:
                    yield tokens


def learn(files, rounds, dim=64):
    rng = np.random.default_rng(0)
    vectors = {}
    rate = 0.05
    for r in range(rounds):
        for tokens in sentences(files):
            for w in tokens:
                if w not in vectors:
                    vectors[w] = rng.normal(scale=0.1, size=dim)
            centre = np.mean([vectors[w] for w in tokens], axis=0)
            for w in tokens:
                vectors[w] += rate * (centre - vectors[w])
                vectors[w] /= np.linalg.norm(vectors[w])
        rate *= 0.8
    return vectors


if __name__ == "__main__":
    table = learn(sorted(glob.glob("pubmed/*.xml.gz")), rounds=15)
    np.savez("vectors.npz", **table)
