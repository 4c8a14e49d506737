"""Concordance of the characters and places named in a corpus of opera libretti."""
import random
import re
from collections import Counter, defaultdict

LINES = 92_000
NAMES = 4_000
SYLLABLES = ["la", "ri", "do", "ven", "to", "ca", "mi", "so", "fer", "al", "gi", "no",
             "ma", "ra", "bel", "ti", "ze", "lu", "cor", "pa", "du", "or", "e", "sta"]


def make_word(rng, parts):
    return "".join(rng.choice(SYLLABLES) for _ in range(parts))


def make_vocabulary(rng):
    words = {make_word(rng, rng.randint(2, 4)) for _ in range(15_000)}
    names = set()
    while len(names) < NAMES:
        names.add(make_word(rng, rng.randint(2, 4)).capitalize())
    return sorted(words), sorted(names)


def make_libretti(rng, words, names):
    lines = []
    for _ in range(LINES):
        line = rng.choices(words, k=11)
        if rng.random() < 0.7:
            line[rng.randrange(11)] = rng.choice(names)
        lines.append(" ".join(line))
    return lines


class Concordance:
    def __init__(self, names, width=3):
        self.names = names
        self.width = width
        self.finder = re.compile(r"\b(?:" + "|".join(names) + r")\b")
        self.entries = defaultdict(list)

    def add_line(self, number, line):
        for hit in self.finder.finditer(line):
            name = hit.group()
            before = line[:hit.start()].split()[-self.width:]
            after = line[hit.end():].split()[:self.width]
            self.entries[name].append((number, " ".join(before), " ".join(after)))

    def neighbours(self):
        near = Counter()
        for name, places in self.entries.items():
            for _, before, after in places:
                for word in before.split() + after.split():
                    near[(name, word)] += 1
        return near


def together(entries, span=4):
    by_line = defaultdict(set)
    for name, places in entries.items():
        for number, _, _ in places:
            by_line[number // span].add(name)
    pairs = Counter()
    for group in by_line.values():
        ordered = sorted(group)
        for k, first in enumerate(ordered):
            for second in ordered[k + 1:]:
                pairs[(first, second)] += 1
    return pairs


def main():
    rng = random.Random(1786)
    words, names = make_vocabulary(rng)
    lines = make_libretti(rng, words, names)
    book = Concordance(names)
    for number, line in enumerate(lines):
        book.add_line(number, line)
    near = book.neighbours()
    pairs = together(book.entries)
    total = sum(len(places) for places in book.entries.values())
    print(f"{len(lines)} lines, {len(book.entries)} names found, {total} entries")
    print("closest word:", near.most_common(1))
    print("pairs on stage:", len(pairs))


if __name__ == "__main__":
    main()
