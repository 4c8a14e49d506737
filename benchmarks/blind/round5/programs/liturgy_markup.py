"""Parse a transcription with inline markup and compare its stanzas.

The transcription marks abbreviations <ab>, doubtful readings (word?) and
line ends |.  It is split into tokens, gathered into stanzas, and each stanza
is compared with those before it to find refrains.
"""
import collections
import difflib
import random
import re

WORDS = 125_000
STANZA = 240
BACK = 6

TOKEN = re.compile(r"""
      (?P<ab><[a-z]+>)
    | (?P<doubt>\([a-z]+\?\))
    | (?P<end>\|)
    | (?P<stop>[.,;])
    | (?P<word>[a-z]+)
    | (?P<space>[ ]+)
""", re.X)

SYLLABLES = ("do mi ne sal ve re gi na ma ter mi se ri cor di ae vi ta dul ce do"
             " spes nos tra cla ma mus ex su les fi li ge men tes et flen").split()


def transcription(rng):
    vocabulary = ["".join(rng.choices(SYLLABLES, k=rng.randint(1, 4)))
                  for _ in range(1800)]
    weights = [1.0 / (k + 3) for k in range(len(vocabulary))]
    words = rng.choices(vocabulary, weights, k=WORDS)
    out = []
    for i, word in enumerate(words):
        if i >= 6 * STANZA and rng.random() < 0.45:
            word = words[i - 3 * STANZA]
            words[i] = word
        kind = rng.random()
        if kind < 0.06:
            out.append(f"<{word}>")
        elif kind < 0.09:
            out.append(f"({word}?)")
        else:
            out.append(word)
        if i % 8 == 7:
            out.append("|")
        elif rng.random() < 0.12:
            out[-1] += rng.choice(".,;")
    return " ".join(out)


def tokens(text):
    """Yield (kind, text) for every token of the transcription."""
    while text:
        m = TOKEN.match(text)
        if m is None:
            raise ValueError(f"cannot read {text[:20]!r}")
        if m.lastgroup != "space":
            yield m.lastgroup, m.group()
        text = text[m.end():]


def stanzas(text):
    """Lists of plain words, a new list after each STANZA words."""
    current = []
    kinds = collections.Counter()
    result = []
    for kind, piece in tokens(text):
        kinds[kind] += 1
        if kind in ("word", "ab", "doubt"):
            current.append(piece.strip("<>(?)"))
            if len(current) == STANZA:
                result.append(current)
                current = []
    if current:
        result.append(current)
    return result, kinds


def main():
    rng = random.Random(1532)
    text = transcription(rng)
    verses, kinds = stanzas(text)
    ratios = []
    for k in range(BACK, len(verses)):
        match = difflib.SequenceMatcher(autojunk=False)
        match.set_seq2(verses[k])
        for back in range(1, BACK + 1):
            match.set_seq1(verses[k - back])
            ratios.append(match.ratio())
    refrains = sum(r > 0.5 for r in ratios)
    print(f"characters: {len(text)}, stanzas: {len(verses)}")
    print("tokens:", dict(sorted(kinds.items())))
    print(f"mean agreement: {sum(ratios) / len(ratios):.4f}, refrains: {refrains}")


if __name__ == "__main__":
    main()
