"""A deduplicating backup: fingerprints blocks, looks at some bytes in Python, backs off briefly."""

import hashlib
import json
import random
import sys
from time import perf_counter as clock
from time import sleep

KIND = {"hash": "native", "python": "python", "sleep": "sleeping"}


def rolling(block: bytes, count: int) -> int:
    state = 7
    for byte in block[:count]:
        state = (state * 31 + byte) & 0xFFFFFF
        if state & 0xFF == 0:
            state ^= 0x5A5A
    return state


def main(seconds: float) -> None:
    rng = random.Random(1)
    blocks = [bytes(rng.getrandbits(8) for _ in range(1 << 12)) * 160 for _ in range(3)]
    hashed = python = slept = 0.0
    t3 = start = clock()
    while t3 - start < seconds:
        block = blocks[rng.randrange(3)]
        size = rng.randrange(300_000, 640_000)
        count = rng.randrange(1000, 4000)
        t0 = clock()
        hashlib.sha256(memoryview(block)[:size]).hexdigest()  #: hash
        t1 = clock()
        rolling(block, count)  #: python
        t2 = clock()
        sleep(count * 5e-8)  #: sleep
        t3 = clock()
        hashed += t1 - t0
        python += t2 - t1
        slept += t3 - t2
    stretches = {"hash": hashed, "python": python, "sleep": slept}
    print(json.dumps({"loop_s": t3 - start, "stretches": stretches}))


if __name__ == "__main__":
    main(float(sys.argv[1]))
