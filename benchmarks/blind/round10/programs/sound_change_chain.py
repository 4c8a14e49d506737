"""Applies ordered sound changes to a reconstructed lexicon and compares the daughters."""
import random
import tracemalloc
from collections import Counter

CONSONANTS = ["p", "t", "k", "b", "d", "g", "m", "n", "s", "r", "l", "w", "y", "h"]
VOWELS = ["a", "e", "i", "o", "u"]
WORDS = 27_000
DAUGHTERS = 6
RULES = 30


def make_lexicon(rng):
    lexicon = []
    for _ in range(WORDS):
        word = []
        for _ in range(rng.randint(2, 4)):
            word.append(rng.choice(CONSONANTS))
            word.append(rng.choice(VOWELS))
        if rng.random() < 0.4:
            word.append(rng.choice(CONSONANTS))
        lexicon.append(word)
    return lexicon


def make_rules(rng):
    rules = []
    for _ in range(RULES):
        pool = CONSONANTS if rng.random() < 0.6 else VOWELS
        old, new = rng.sample(pool, 2)
        place = rng.choice(["start", "end", "between", "after_vowel", "anywhere"])
        rules.append((old, rng.choice([new, new, new + "h", ""]), place))
    return rules


def fits(word, k, place):
    if place == "anywhere":
        return True
    if place == "start":
        return k == 0
    if place == "end":
        return k == len(word) - 1
    before = k > 0 and word[k - 1] in VOWELS
    if place == "after_vowel":
        return before
    return before and k + 1 < len(word) and word[k + 1] in VOWELS


def change(word, rule):
    old, new, place = rule
    result = []
    for k, segment in enumerate(word):
        if segment == old and fits(word, k, place):
            if new:
                result.append(new)
        else:
            result.append(segment)
    return result if result else word


def evolve(lexicon, rules):
    daughter = []
    for word in lexicon:
        for rule in rules:
            word = change(word, rule)
        daughter.append(tuple(word))
    return daughter


def shared(first, second):
    return sum(a == b for a, b in zip(first, second)) / len(first)


def main():
    tracemalloc.start(25)
    rng = random.Random(1863)
    lexicon = make_lexicon(rng)
    daughters = [evolve(lexicon, make_rules(rng)) for _ in range(DAUGHTERS)]
    homophones = [len(d) - len(set(d)) for d in daughters]
    segments = Counter(s for d in daughters for word in d for s in word)
    table = [shared(daughters[a], daughters[b])
             for a in range(DAUGHTERS) for b in range(a)]
    print(f"{WORDS} words, {DAUGHTERS} daughters, {RULES} changes each")
    print(f"homophones {homophones}, segments {len(segments)}")
    print(f"cognates left alike: {min(table):.4f} to {max(table):.4f}")
    tracemalloc.stop()


if __name__ == "__main__":
    main()
