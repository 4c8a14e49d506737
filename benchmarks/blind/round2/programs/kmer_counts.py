"""Counts strand-neutral k-mers in simulated amplicons with two worker processes."""
import os
import tempfile
from collections import Counter
from multiprocessing import Manager, Pool

import numpy as np

K = 9
READS = 9000
GROUP = 500
COMPLEMENT = str.maketrans("ACGT", "TGCA")


def write_reads(path):
    rng = np.random.default_rng(404)
    genome = "".join(rng.choice(list("ACGT"), 6000, p=[0.3, 0.2, 0.2, 0.3]))
    at = rng.integers(0, len(genome) - 160, READS)
    flip = rng.random(READS) < 0.5
    with open(path, "w") as f:
        for i in range(READS):
            r = genome[at[i]:at[i] + 160]
            f.write(f">r{i}\n{r.translate(COMPLEMENT)[::-1] if flip[i] else r}\n")


def read_groups(path):
    group = []
    with open(path) as f:
        for line in f:
            if line[0] != ">":
                group.append(line.strip())
                if len(group) == GROUP:
                    yield group
                    group = []
    if group:
        yield group


def complexity(word):
    return len({word[i:i + 2] for i in range(K - 1)})


def canonical(read):
    back = read.translate(COMPLEMENT)[::-1]
    n = len(read)
    for i in range(n - K + 1):
        a, b = read[i:i + K], back[n - K - i:n - i]
        w = a if a < b else b
        if complexity(w) > 4:
            yield w


def count_group(job):
    group, shared, lock = job
    for read in group:
        found = Counter(canonical(read))
        with lock:
            for word, n in found.items():
                if word[0] == "A" and word[-1] == "T":
                    shared[word] = shared.get(word, 0) + n
    return len(group)


def main():
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "amplicons.fa")
        write_reads(path)
        with Manager() as manager, Pool(2) as pool:
            shared, lock = manager.dict(), manager.Lock()
            done = sum(pool.imap_unordered(count_group, ((g, shared, lock) for g in read_groups(path))))
            table = dict(shared)
    top = sorted(table.items(), key=lambda p: (-p[1], p[0]))[:3]
    print(f"{done} reads, {len(table)} words, {sum(table.values())} counted")
    print("most frequent", *[f"{w}:{n}" for w, n in top])


if __name__ == "__main__":
    main()
