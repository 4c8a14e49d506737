"""Count motif hits in many short reads with a pool."""
import multiprocessing as mp
import random

MOTIFS = ["TATAAA", "CCAAT", "GGGCGG", "CACGTG"]


def hits(read):
    return sum(read.count(m) for m in MOTIFS)


def reads(n):
    r = random.Random(4)
    pool = ["".join(r.choices("ACGT", k=150)) for _ in range(2000)]
    for i in range(n):
        yield pool[i % 2000]


if __name__ == "__main__":
    total = 0
    with mp.Pool(2) as pool:
        for k, h in enumerate(pool.imap(hits, reads(1_000_000), chunksize=2000)):
            total += h
            if k % 200_000 == 0:
                print(k, total, flush=True)
    print("hits", total)
