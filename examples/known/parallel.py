"""Count the primes below a number, a piece of them on each core: twice the cores, half the time.

Nothing is shared and nothing waits for another, so `teho compare` should find all cores worth it.

    teho compare --on cpu:1,cpu:all -- python examples/known/parallel.py
"""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor

PIECES = 61


def primes_in(piece: range) -> int:
    """Return how many primes a range has, by trial division."""
    return sum(all(number % one for one in range(2, int(number**0.5) + 1)) for number in piece)


def main() -> None:
    """Deal the numbers out, in so many pieces that no core waits long for the last one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--below", type=int, default=1_000_000)
    below = parser.parse_args().below
    pieces = [range(2 + first, below, PIECES) for first in range(PIECES)]
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        print(f"{sum(pool.map(primes_in, pieces)):,} primes below {below:,}")


if __name__ == "__main__":
    main()
