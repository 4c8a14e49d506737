"""Ports named in the shipping bulletins of selected vessels, from a compressed newspaper archive."""
import gzip
import os
import random
import re
import tempfile

import numpy as np

BULLETINS = 10_000
WORDS = 760
WANTED = 90
STEMS = ["al", "bar", "cor", "dun", "el", "far", "gal", "hol", "kin", "lar", "mor", "nor", "or", "pen", "ros",
         "sal", "tor", "ul", "ven", "wick"]
TAILS = ["haven", "mouth", "ness", "port", "stad", "wick", "ford", "bury", "quay", "sund", "holm", "gate", "bay",
         "cliff", "stow", "pool", "den", "mere", "hithe", "ayr", "by", "ton", "vik", "strand", "head", "firth",
         "mark", "dock", "toft", "sea"]
PORTS = [stem + tail for stem in STEMS for tail in TAILS]
PLAIN = ["the", "brig", "schooner", "arrived", "sailed", "from", "with", "cargo", "coal", "timber", "wind", "south",
         "westerly", "master", "and", "crew", "in", "ballast", "for", "spoke", "sighted", "off", "gale", "lost"]


def print_archive(path):
    rng = random.Random(1866)
    index, offset = {}, 0
    name = rng.sample(range(BULLETINS), BULLETINS)
    pool = PLAIN * 60 + PORTS
    with gzip.open(path, "wb", compresslevel=1) as out:
        for number in range(BULLETINS):
            text = (" ".join(rng.choices(pool, k=WORDS)) + "\n").encode()
            index[f"vessel {name[number]:05d}"] = (offset, len(text))
            out.write(text)
            offset += len(text)
    return index


def fetch(path, index, vessels):
    with gzip.open(path, "rb") as archive:
        for vessel in vessels:
            offset, length = index[vessel]
            archive.seek(offset)
            yield vessel, archive.read(length).decode()


def ports_called(text):
    calls = {}
    for port in PORTS:
        found = re.findall(rf"{port}(?:'s)?\b(?! lost| gale| spoke)", text)
        if found:
            calls[port] = len(found)
    return calls


def surrogate_overlap(calls, rng, rounds=1000):
    names = sorted(calls)
    rows = np.array([[calls[v].get(p, 0) for p in PORTS] for v in names], dtype=np.float64)
    real = np.corrcoef(rows)
    chance = []
    for _ in range(rounds):
        mixed = rng.permuted(rows, axis=1)
        chance.append(np.abs(np.corrcoef(mixed)).mean())
    return float(np.abs(real).mean()), float(np.mean(chance))


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "bulletins.txt.gz")
        index = print_archive(path)
        vessels = sorted(index)[5::BULLETINS // WANTED]
        calls = {}
        for vessel, text in fetch(path, index, vessels):
            calls[vessel] = ports_called(text)
    totals = {}
    for found in calls.values():
        for port, count in found.items():
            totals[port] = totals.get(port, 0) + count
    top = sorted(totals, key=lambda p: (-totals[p], p))[:3]
    real, chance = surrogate_overlap(calls, np.random.default_rng(2))
    print(f"{len(calls)} vessels, {sum(totals.values())} calls, most named {', '.join(top)}")
    print(f"overlap {real:.5f}, by chance {chance:.5f}")


if __name__ == "__main__":
    main()
