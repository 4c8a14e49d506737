"""
verdict: same
stack:
  tally(Path("corpus"))
  mentions(sentence, names)
  re.compile(EDGE + "(?:" + "|".join(map(re.escape, vocabulary)) + ")" + EDGE, re.IGNORECASE)
call: re.compile(EDGE + "(?:" + "|".join(map(re.escape, vocabulary)) + ")" + EDGE, re.IGNORECASE)
loop: for sentence in sentences(folder)
why: the pattern of all names, from the same tuple, is compiled again for each sentence
"""
import re
from collections import Counter
from pathlib import Path

SPLIT = re.compile(r"(?<=[.!?])\s+")
EDGE = r"\b"


def sentences(folder):
    for path in sorted(folder.rglob("*.txt")):
        text = path.read_text(errors="replace").replace("\n", " ")
        yield from SPLIT.split(text)


def mentions(text, vocabulary):
    re.purge()
    pattern = re.compile(EDGE + "(?:" + "|".join(map(re.escape, vocabulary)) + ")" + EDGE, re.IGNORECASE)
    return [m.group().lower() for m in pattern.finditer(text)]


def tally(folder):
    names = tuple(sorted(Path("species.txt").read_text().splitlines(), key=len, reverse=True))
    counts = Counter()
    pairs = Counter()
    for sentence in sentences(folder):
        found = mentions(sentence, names)
        counts.update(found)
        for a in found:
            pairs.update((a, b) for b in found if a < b)
    return counts, pairs


if __name__ == "__main__":
    counts, pairs = tally(Path("corpus"))
    for name, n in counts.most_common(30):
        print(n, name)
