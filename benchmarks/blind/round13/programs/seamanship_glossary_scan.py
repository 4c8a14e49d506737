"""In which chapters of old sailing manuals does each term of a glossary occur?"""
import collections
import random
import re

TERMS = 700
CHAPTERS = 100
CHAPTER_WORDS = 900

ONSETS = "b br c cl d f fl g h j k l m p r s sh sp st t tr w".split()
VOWELS = "a e i o u ea oo".split()
CODAS = "b ck d ft g k l ll m n nd p r rn st t".split()


def coin_word(rng, syllables):
    return "".join(rng.choice(ONSETS) + rng.choice(VOWELS) + rng.choice(CODAS)
                   for _ in range(syllables))


def make_glossary(rng):
    terms = set()
    while len(terms) < TERMS:
        term = coin_word(rng, 2)
        if rng.random() < 0.3:
            term += " " + coin_word(rng, 1)
        terms.add(term)
    return sorted(terms)


def make_chapter(rng, glossary, filler):
    words = []
    for _ in range(CHAPTER_WORDS):
        if rng.random() < 0.08:
            word = rng.choice(glossary)
            if rng.random() < 0.3:
                word += "s"
        else:
            word = rng.choice(filler)
        if rng.random() < 0.07:
            word = word.capitalize()
        if rng.random() < 0.1:
            word += rng.choice(",.;:")
        words.append(word)
    return " ".join(words)


def term_pattern(term):
    head = r"\s+".join(re.escape(part) for part in term.split(" "))
    return r"\b" + head + r"(?:s|es|ing)?\b"


def scan(glossary, chapters):
    patterns = [(term, term_pattern(term)) for term in glossary]
    counts = collections.Counter()
    where = collections.defaultdict(list)
    for number, text in enumerate(chapters):
        for term, pattern in patterns:
            hits = len(re.findall(pattern, text, re.IGNORECASE))
            if hits:
                counts[term] += hits
                where[term].append(number)
    return counts, where


def main():
    rng = random.Random(1808)
    glossary = make_glossary(rng)
    filler = [coin_word(rng, rng.choice((1, 1, 2))) for _ in range(1500)]
    chapters = [make_chapter(rng, glossary, filler) for _ in range(CHAPTERS)]
    print("text: %d chapters, %d characters" % (len(chapters), sum(map(len, chapters))))
    counts, where = scan(glossary, chapters)
    print("terms found:", len(counts), "of", len(glossary))
    for term, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:4]:
        print("  %-18s %4d in %3d chapters" % (term, count, len(where[term])))
    rare = sum(1 for term in where if len(where[term]) <= 2)
    print("terms in one or two chapters:", rare)


if __name__ == "__main__":
    main()
