"""Counts the domino tilings of boards with holes exactly, board by board."""
import math
import multiprocessing as mp
import random

WIDTH = 13
HEIGHT = 20
HOLES = 6
BOARDS = 150


def make_board(number):
    rng = random.Random(1961 + number)
    black = [(y, x) for y in range(HEIGHT) for x in range(WIDTH) if (x + y) % 2 == 0]
    white = [(y, x) for y in range(HEIGHT) for x in range(WIDTH) if (x + y) % 2 == 1]
    return frozenset(rng.sample(black, HOLES // 2) + rng.sample(white, HOLES // 2))


def count_tilings(holes):
    """Broken profile: a bit tells that the cell is already covered from before."""
    front = {0: 1}
    for y in range(HEIGHT):
        for x in range(WIDTH):
            here = 1 << x
            right = 1 << (x + 1)
            hole = (y, x) in holes
            can_right = x + 1 < WIDTH and (y, x + 1) not in holes
            can_down = y + 1 < HEIGHT and (y + 1, x) not in holes
            following = {}
            get = following.get
            for mask, ways in front.items():
                if hole:
                    if not mask & here:
                        following[mask] = get(mask, 0) + ways
                elif mask & here:
                    free = mask ^ here
                    following[free] = get(free, 0) + ways
                else:
                    if can_right and not mask & right:
                        across = mask | right
                        following[across] = get(across, 0) + ways
                    if can_down:
                        down = mask | here
                        following[down] = get(down, 0) + ways
            front = following
    return front.get(0, 0)


def solve(number):
    return number, count_tilings(make_board(number))


def main():
    with mp.get_context("fork").Pool(2) as pool:
        counts = dict(pool.imap_unordered(solve, range(BOARDS)))
    possible = {n: c for n, c in counts.items() if c}
    richest = max(possible, key=possible.get)
    mean = sum(math.log(c) for c in possible.values()) / len(possible)
    print(f"{BOARDS} boards of {HEIGHT} x {WIDTH} with {HOLES} holes, {len(possible)} can be tiled")
    print(f"board {richest} in {possible[richest]} ways")
    print(f"mean logarithm of the count {mean:.4f}")


if __name__ == "__main__":
    main()
