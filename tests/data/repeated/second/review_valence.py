"""
verdict: same
stack:
  summarise(open("reviews.jsonl"))
  valence(review["text"])
  read_lexicon(lexicon_file)
  csv.reader(handle, delimiter=TAB)
call: read_lexicon(lexicon_file)
loop: for line in lines
why: every review is scored with the default lexicon file, which is read again in each call
"""
import csv
import json
import re
from collections import defaultdict

WORD = re.compile(r"[a-z']+")
TAB = "\t"


def read_lexicon(path):
    scores = {}
    with open(path, newline="") as handle:
        for word, mean, _sd, _raw in csv.reader(handle, delimiter=TAB):
            scores[word] = float(mean)
    return scores


def valence(text, lexicon_file="vader_lexicon.txt"):
    lexicon = read_lexicon(lexicon_file)
    words = WORD.findall(text.lower())
    hits = [lexicon[w] for w in words if w in lexicon]
    return sum(hits) / len(hits) if hits else 0.0


def summarise(lines):
    by_product = defaultdict(list)
    for line in lines:
        review = json.loads(line)
        by_product[review["product"]].append(valence(review["text"]))
    return {k: sum(v) / len(v) for k, v in by_product.items()}


if __name__ == "__main__":
    table = summarise(open("reviews.jsonl"))
    for product, mean in sorted(table.items(), key=lambda kv: -kv[1])[:20]:
        print(f"{product}\t{mean:+.3f}")
