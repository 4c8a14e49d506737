"""A log cleaner: finds addresses, hides numbers, rewrites words through a Python callback, counts."""

import json
import random
import re
import sys
from time import perf_counter as clock

KIND = {"findall": "native", "sub": "native", "callback": "mixed", "count": "python"}
ADDRESS = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b")
NUMBER = re.compile(r"\d+")
WORD = re.compile(r"\b[a-z]{5,}\b")


def shorten(match) -> str:
    word = match.group()
    return word[0] + str(len(word) - 2) + word[-1]


def count_words(text: str) -> dict:
    counts = {}
    for line in text.split("\n"):
        for word in line.split():
            counts[word] = counts.get(word, 0) + 1
    return counts


def make_text(rng: random.Random, lines: int) -> str:
    words = "error warning connect closed from by to host user session timeout get".split()
    return "\n".join(
        " ".join(rng.choices(words, k=7)) + " 10.%d.0.%d %d" % (i % 256, i % 99, i)
        for i in range(lines)
    )


def main(seconds: float) -> None:
    rng = random.Random(3)
    texts = [make_text(rng, rng.randrange(120, 500)) for _ in range(41)]
    found = subbed = called = counted = 0.0
    t4 = start = clock()
    while t4 - start < seconds:
        text = texts[rng.randrange(41)]
        t0 = clock()
        ADDRESS.findall(text)  #: findall
        t1 = clock()
        plain = NUMBER.sub("#", text)  #: sub
        t2 = clock()
        short = WORD.sub(shorten, plain)  #: callback
        t3 = clock()
        count_words(short)  #: count
        t4 = clock()
        found, subbed = found + t1 - t0, subbed + t2 - t1
        called, counted = called + t3 - t2, counted + t4 - t3
    stretches = {"findall": found, "sub": subbed, "callback": called, "count": counted}
    print(json.dumps({"loop_s": t4 - start, "stretches": stretches}))


if __name__ == "__main__":
    main(float(sys.argv[1]))
