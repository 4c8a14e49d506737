"""Count loanwords, with their inflected forms, in a corpus of old newspapers."""
import random
import re
from collections import Counter, defaultdict

N_WORDS = 720
N_ISSUES = 72
WORDS_PER_ISSUE = 400
CONSONANTS = "bdfghklmnprstvz"
VOWELS = "aeiou"
ENDINGS = ["", "s", "es", "en", "ern", "ung", "lich"]


def invent_words(rng, count):
    words = set()
    while len(words) < count:
        words.add("".join(rng.choice(CONSONANTS) + rng.choice(VOWELS) for _ in range(rng.randint(2, 4)))
                  + rng.choice(CONSONANTS))
    return sorted(words)


def write_issue(rng, loans, native):
    words = []
    for _ in range(WORDS_PER_ISSUE):
        if rng.random() < 0.12:
            word = rng.choice(loans) + rng.choice(ENDINGS)
            if rng.random() < 0.2:
                word = "ge" + word
        else:
            word = rng.choice(native)
        words.append(word.capitalize() if rng.random() < 0.15 else word)
    return " ".join(words)


def pattern_of(loan):
    """The loanword with German prefixes, endings and the old spellings of its vowels."""
    stem = loan.replace("i", "[iy]").replace("k", "(?:k|c|ck)").replace("f", "(?:f|ph)")
    return r"\b(?:ge|be|ver)?" + stem + r"(?:e[sn]?|ern|s|ung(?:en)?|lich(?:e[rns]?)?)?\b"


def survey(issues, loans):
    counts = Counter()
    spread = defaultdict(set)
    patterns = {loan: pattern_of(loan) for loan in loans}
    for number, text in enumerate(issues):
        for loan, pattern in patterns.items():
            hits = re.findall(pattern, text, re.IGNORECASE)
            if hits:
                counts[loan] += len(hits)
                spread[loan].add(number)
    return counts, spread


def keyness(counts, spread):
    """Words that are frequent and evenly spread."""
    return sorted(((counts[w] * len(spread[w]) / N_ISSUES, w) for w in counts), reverse=True)


def main():
    rng = random.Random(1871)
    vocabulary = invent_words(rng, 6000)
    rng.shuffle(vocabulary)
    loans, native = vocabulary[:N_WORDS], vocabulary[N_WORDS:]
    issues = [write_issue(rng, loans, native) for _ in range(N_ISSUES)]
    counts, spread = survey(issues, loans)
    print("issues", len(issues), "loanwords seen", len(counts))
    print("tokens", sum(counts.values()))
    for score, word in keyness(counts, spread)[:3]:
        print("%s %.2f" % (word, score))


if __name__ == "__main__":
    main()
