"""Smith-Waterman of a probe against contigs, spread over workers."""
import random
from concurrent.futures import ProcessPoolExecutor as ThreadPoolExecutor

PROBE = "ACGTTGCAAGCTTGACCTGA"


def align(contig):
    prev = [0] * (len(PROBE) + 1)
    best = 0
    for c in contig:
        cur = [0]
        for j, p in enumerate(PROBE, 1):
            s = max(0, prev[j - 1] + (2 if c == p else -1), prev[j] - 2, cur[j - 1] - 2)
            cur.append(s)
            if s > best:
                best = s
        prev = cur
    return best


def main():
    r = random.Random(0)
    contigs = ["".join(r.choices("ACGT", k=2400)) for _ in range(2100)]
    with ThreadPoolExecutor(max_workers=2) as ex:
        scores = []
        for i, s in enumerate(ex.map(align, contigs, chunksize=20)):
            scores.append(s)
            if i % 200 == 0:
                print(i, s, flush=True)
    print("best", max(scores))


if __name__ == "__main__":
    main()
