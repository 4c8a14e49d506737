"""Find the catalogue entries that are most like each stamp of a collection."""
import numpy as np

ENTRIES, WIDTH = 400_000, 128
STAMPS, WANTED = 46, 10
COUNTRIES = 60


def catalogue(rng):
    """One feature vector per entry (as an image model would give it) and its country."""
    country = rng.integers(0, COUNTRIES, ENTRIES)
    centres = rng.normal(0, 1, (COUNTRIES, WIDTH)).astype(np.float32)
    vectors = centres[country] + rng.normal(0, 0.9, (ENTRIES, WIDTH)).astype(np.float32)
    scale = rng.lognormal(0, 0.5, ENTRIES).astype(np.float32)
    return vectors * scale[:, None], country


def collection(rng, vectors):
    source = rng.integers(0, ENTRIES, STAMPS)
    worn = rng.normal(0, 0.5, (STAMPS, WIDTH)).astype(np.float32)
    return vectors[source] + worn, source


class Finder:
    def __init__(self, vectors):
        self.vectors = vectors

    def similarity(self, query):
        unit = self.vectors / np.linalg.norm(self.vectors, axis=1, keepdims=True)
        return unit @ (query / np.linalg.norm(query))

    def closest(self, query, count):
        scores = self.similarity(query).tolist()
        ranked = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
        return [(entry, scores[entry]) for entry in ranked[:count]]


def votes(found, country):
    """The country that most of the found entries share, and how many do."""
    counts = np.bincount([country[entry] for entry, _ in found], minlength=COUNTRIES)
    return int(counts.argmax()), int(counts.max())


def main():
    rng = np.random.default_rng(64)
    vectors, country = catalogue(rng)
    stamps, source = collection(rng, vectors)
    finder = Finder(vectors)
    exact = right = 0
    certain = []
    for number, stamp in enumerate(stamps):
        found = finder.closest(stamp, WANTED)
        exact += found[0][0] == source[number]
        name, support = votes(found, country)
        right += name == country[source[number]]
        certain.append((support, number))
        if number < 3:
            entry, score = found[0]
            print(f"stamp {number}: entry {entry} at {score:.4f}, country {name} ({support})")
    print(f"{exact} of {STAMPS} stamps found again, country right for {right}")
    print("least certain:", [number for _, number in sorted(certain)[:5]])


if __name__ == "__main__":
    main()
