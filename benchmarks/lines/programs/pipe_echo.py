"""A client of a helper process behind a pipe: short questions, longer ones that the helper
computes, and some Python of its own while the helper idles."""

import json
import random
import subprocess
import sys
from time import perf_counter as clock

KIND = {"short": "process", "long": "process", "python": "python"}
HELPER = """
import sys
for line in sys.stdin.buffer:
    print(sum(i * i % 7 for i in range(int(line))), flush=True)
"""


def ask(helper: subprocess.Popen, number: int) -> int:
    helper.stdin.write(b"%d\n" % number)
    helper.stdin.flush()
    return int(helper.stdout.readline())


def collatz(limit: int) -> int:
    longest = 0
    for n in range(1, limit):
        steps = 0
        while n != 1:
            n = 3 * n + 1 if n & 1 else n // 2
            steps += 1
        longest = max(longest, steps)
    return longest


def main(seconds: float) -> None:
    rng = random.Random(7)
    command = [sys.executable, "-S", "-E", "-c", HELPER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as helper:
        ask(helper, 1)
        echoed = asked = python = 0.0
        t3 = start = clock()
        while t3 - start < seconds:
            n = rng.randrange(3000, 12_000)
            t0 = clock()
            ask(helper, 1500)  #: short
            t1 = clock()
            ask(helper, n)  #: long
            t2 = clock()
            collatz(n // 50)  #: python
            t3 = clock()
            echoed, asked, python = echoed + t1 - t0, asked + t2 - t1, python + t3 - t2
    stretches = {"short": echoed, "long": asked, "python": python}
    print(json.dumps({"loop_s": t3 - start, "stretches": stretches}))


if __name__ == "__main__":
    main(float(sys.argv[1]))
