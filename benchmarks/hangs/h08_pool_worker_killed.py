"""Counts word pairs in many small documents with a process pool (no deep learning)."""
import os
import random
import signal
import time
from collections import Counter
from multiprocessing import Pool

WORDS = ("alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho "
         "sigma tau upsilon phi chi psi omega").split()


def document(number):
    rng = random.Random(number)
    return [rng.choice(WORDS) for _ in range(1500)]


def count_pairs(number):
    words = document(number)
    pairs = Counter(zip(words, words[1:]))
    if number == 3203:
        os.kill(os.getpid(), signal.SIGKILL)  # the huge document: out of memory
    return pairs


def main():
    total = Counter()
    t0 = time.time()
    with Pool(2) as pool:
        for batch in range(20_000):
            numbers = range(batch * 8, batch * 8 + 8)
            for pairs in pool.map(count_pairs, numbers):
                total.update(pairs)
            time.sleep(0.04)  # fetch the next documents
            if batch % 20 == 0:
                best, n = total.most_common(1)[0]
                print(f"{time.time() - t0:6.1f} s  batch {batch}  top pair {best} {n}", flush=True)


if __name__ == "__main__":
    main()
