"""Count the primes below a number on all cores: with twice the cores, it takes half the time.

The cores share no data and do not wait, so `teho compare` should find that all cores are faster.

    teho compare --on cpu:1,cpu:all -- python examples/known/parallel.py
"""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor

PIECES = 61


def primes_in(piece: range) -> int:
    """Return the number of primes in a range, by trial division."""
    return sum(all(number % one for one in range(2, int(number**0.5) + 1)) for number in piece)


def main() -> None:
    """Divide the numbers into small pieces, so that the last core to finish is not late."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--below", type=int, default=1_000_000)
    below = parser.parse_args().below
    pieces = [range(2 + first, below, PIECES) for first in range(PIECES)]
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        print(f"{sum(pool.map(primes_in, pieces)):,} primes below {below:,}")


if __name__ == "__main__":
    main()
