"""Which gravestone epitaphs are copies of each other? Word-wise comparison of all pairs."""
import difflib
import random
import re
import unicodedata

STONES = 960
MASTERS = 260
THRESHOLD = 0.72


def make_epitaphs(rng):
    """Masons copied verses from pattern books, with changes and their own spelling."""
    letters = "aeioubdglmnrst"
    words = ["".join(rng.choice(letters) for _ in range(rng.randint(3, 8))) for _ in range(900)]
    books = [[rng.choice(words) for _ in range(rng.randint(22, 34))] for _ in range(MASTERS)]
    accents = {"a": "\u00e0", "e": "\u00e9", "u": "\u00fc"}
    epitaphs = []
    for _ in range(STONES):
        verse = list(rng.choice(books))
        for _ in range(rng.randint(0, 9)):
            verse[rng.randrange(len(verse))] = rng.choice(words)
        text = " ".join(verse).capitalize()
        text = re.sub(r" (\w{7,})", lambda m: ", " + m.group(1).upper(), text)
        text = "".join(accents[c] if c in accents and rng.random() < 0.1 else c for c in text)
        epitaphs.append(text + rng.choice(".!;"))
    return epitaphs


def clean(text):
    """Lower-case words without accents and punctuation."""
    text = unicodedata.normalize("NFKD", text)
    text = text.encode("ascii", "ignore").decode("ascii")
    text = re.sub(r"[^a-z ]+", " ", text.lower())
    return text.split()


def kin(epitaphs):
    """Pairs of stones whose words agree in order."""
    pairs = []
    for i in range(len(epitaphs)):
        for j in range(i + 1, len(epitaphs)):
            stone = clean(epitaphs[i])
            other = clean(epitaphs[j])
            matcher = difflib.SequenceMatcher(None, other, stone, autojunk=False)
            if matcher.real_quick_ratio() < THRESHOLD or matcher.quick_ratio() < THRESHOLD:
                continue
            if matcher.ratio() >= THRESHOLD:
                pairs.append((i, j))
    return pairs


def families(count, pairs):
    """Connected groups of stones."""
    parent = list(range(count))

    def top(k):
        while parent[k] != k:
            parent[k] = parent[parent[k]]
            k = parent[k]
        return k

    for i, j in pairs:
        parent[top(i)] = top(j)
    groups = {}
    for k in range(count):
        groups.setdefault(top(k), []).append(k)
    return sorted(groups.values(), key=lambda group: (-len(group), group))


def main():
    rng = random.Random(1790)
    epitaphs = make_epitaphs(rng)
    pairs = kin(epitaphs)
    groups = families(len(epitaphs), pairs)
    print("stones:", len(epitaphs), "kindred pairs:", len(pairs))
    print("families:", len(groups), "largest:", [len(group) for group in groups[:5]])
    print("single stones:", sum(1 for group in groups if len(group) == 1))


if __name__ == "__main__":
    main()
