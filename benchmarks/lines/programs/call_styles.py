"""An expression evaluator in five styles of Python: deep recursion, a chain of generators,
properties, a comprehension of calls, and a function made by exec."""

import json
import random
import sys
from time import perf_counter as clock

KIND = dict.fromkeys(["recursion", "generators", "properties", "calls", "generated"], "python")
LINES = ["def poly(x):"] + ["    x = x * x %% 1.7 + %d" % i for i in range(30)] + ["    return x"]


def deep(level: int) -> int:
    return 1 + deep(level - 1) if level else 0


def chained(n: int) -> int:
    items = range(n)
    for _ in range(8):
        items = (item + 1 for item in items)
    return sum(items)


class Point:
    def __init__(self, x: float, y: float) -> None:
        self._x, self._y = x, y

    x = property(lambda self: self._x)
    norm = property(lambda self: (self.x * self.x + self._y * self._y) ** 0.5)


def main(seconds: float) -> None:
    made: dict = {}
    exec("\n".join(LINES), made)
    rng = random.Random(5)
    points = [Point(rng.random(), rng.random()) for _ in range(2000)]
    used = [0.0] * 5
    t5 = start = clock()
    while t5 - start < seconds:
        n = rng.randrange(200, 1000)
        t0 = clock()
        sum(map(deep, [100] * (n // 20)))  #: recursion
        t1 = clock()
        chained(n)  #: generators
        t2 = clock()
        max(p.norm for p in points[:n])  #: properties
        t3 = clock()
        [deep(i & 7) for i in range(n)]  #: calls
        t4 = clock()
        [made["poly"](p.x) for p in points[: n // 10]]  #: generated
        t5 = clock()
        ends = (t0, t1, t2, t3, t4, t5)
        used = [total + ends[i + 1] - ends[i] for i, total in enumerate(used)]
    print(json.dumps({"loop_s": t5 - start, "stretches": dict(zip(KIND, used))}))


if __name__ == "__main__":
    main(float(sys.argv[1]))
