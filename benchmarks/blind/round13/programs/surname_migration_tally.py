"""Surname roots per parish from censuses: who moved in, counted in two processes."""
import multiprocessing as mp
import random

PARISHES = 40
RECORDS = 2600
WORKERS = 2

ROOTS = ["ash", "bar", "cal", "den", "ell", "far", "gil", "har", "ing", "kel",
         "lan", "mar", "nor", "oak", "pen", "ros", "sut", "tho", "wal", "win"]
ENDINGS = ["ton", "tonne", "ham", "hamme", "ley", "leigh", "lie", "by", "bie", "worth", "ford", "forde"]


def make_records(parish):
    """The names of one parish, with the spelling of its clerks."""
    rng = random.Random(1000 + parish)
    local = rng.sample(ROOTS, 9)
    records = []
    for _ in range(RECORDS):
        root = rng.choice(local) if rng.random() < 0.8 else rng.choice(ROOTS)
        name = root + rng.choice(ENDINGS)
        if rng.random() < 0.2:
            k = rng.randrange(1, len(name))
            name = name[:k] + name[k - 1] + name[k:]
        records.append((name, rng.randrange(1841, 1911, 10)))
    return records


def distance(a, b):
    """Edit distance."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (x != y))
    return row[-1]


def root_of(name):
    return min(ROOTS, key=lambda root: (distance(name[:4], root), root))


def count_parish(job):
    parish, tally = job
    for name, year in make_records(parish):
        key = (parish, root_of(name), year)
        tally[key] = tally.get(key, 0) + 1
    return parish


def main():
    with mp.Manager() as manager:
        tally = manager.dict()
        with mp.Pool(WORKERS) as pool:
            done = pool.map(count_parish, [(p, tally) for p in range(PARISHES)], chunksize=1)
        counts = tally.copy()
    print("parishes:", len(done), "entries:", sum(counts.values()), "cells:", len(counts))
    by_root = {}
    for (parish, root, year), n in counts.items():
        by_root.setdefault(root, [0, set()])
        by_root[root][0] += n
        by_root[root][1].add(parish)
    for root in sorted(by_root, key=lambda r: (-by_root[r][0], r))[:4]:
        print("  root %-4s %6d people in %2d parishes" % (root, by_root[root][0], len(by_root[root][1])))
    early = sum(n for (_, _, year), n in counts.items() if year <= 1861)
    print("share before 1871: %.3f" % (early / sum(counts.values())))


if __name__ == "__main__":
    main()
