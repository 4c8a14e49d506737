"""An index builder: plain sorting holds the interpreter lock, sorting by a key calls back into
Python, packing releases the lock, and a merge is pure Python; lengths vary from round to round."""

import heapq
import json
import random
import sys
import zlib
from time import perf_counter as clock

KIND = {"sort": "native", "keyed": "mixed", "pack": "native", "merge": "python"}


def near(value: float) -> tuple:
    return (value - 0.5) ** 2, value


def unite(left: list, right: list) -> int:
    return sum(1 for value in heapq.merge(left, right) if value > 0.25)


def main(seconds: float) -> None:
    rng = random.Random(4)
    values = [rng.random() for _ in range(300_000)]
    raw = b"".join(b"%.6f;" % value for value in values)
    plain = keyed = packed = merged = 0.0
    t4 = start = clock()
    while t4 - start < seconds:
        n = int(rng.triangular(30_000, 220_000, 60_000))
        offset = rng.randrange(300_000 - n)
        part = values[offset : offset + n]
        t0 = clock()
        ordered = sorted(part)  #: sort
        t1 = clock()
        sorted(part[: n // 5], key=near)  #: keyed
        t2 = clock()
        zlib.compress(raw[offset : offset + 3 * n], 3)  #: pack
        t3 = clock()
        unite(ordered[: n // 3], ordered[-n // 3 :])  #: merge
        t4 = clock()
        plain, keyed = plain + t1 - t0, keyed + t2 - t1
        packed, merged = packed + t3 - t2, merged + t4 - t3
    stretches = {"sort": plain, "keyed": keyed, "pack": packed, "merge": merged}
    print(json.dumps({"loop_s": t4 - start, "stretches": stretches}))


if __name__ == "__main__":
    main(float(sys.argv[1]))
