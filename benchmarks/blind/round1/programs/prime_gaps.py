"""Longest prime gaps per interval, two worker processes."""
import math
import multiprocessing as mp


def work(start):
    n = 220_000
    small = [p for p in range(3, math.isqrt(start + n) + 1, 2) if all(p % q for q in range(3, math.isqrt(p) + 1, 2))]
    flags = bytearray([1]) * n
    for p in small:
        first = (-start) % p
        for k in range(first, n, p):
            flags[k] = 0
    last, best = None, 0
    for k in range(n):
        v = start + k
        if v % 2 and flags[k]:
            if last is not None:
                best = max(best, v - last)
            last = v
    return start, best


if __name__ == "__main__":
    starts = [10_000_000 + 220_000 * k for k in range(130)]
    with mp.Pool(2) as pool:
        for k, (s, gap) in enumerate(pool.imap_unordered(work, starts)):
            if k % 10 == 0:
                print(s, gap, flush=True)
