"""A download checker: worker threads hash while the main thread waits for them, then it hashes
one block itself, does some Python, and rests inside an asyncio loop."""

import asyncio
import hashlib
import json
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter as clock

KIND = {"pool": "threads", "hash": "native", "python": "python", "rest": "sleeping"}


def digest(block: memoryview) -> str:
    return hashlib.sha1(block).hexdigest()


def popular(text: str, size: int) -> list:
    counts: dict = {}
    for i in range(len(text) - size):
        gram = text[i : i + size]
        counts[gram] = counts.get(gram, 0) + 1
    return sorted(counts, key=counts.__getitem__)[-3:]


def main(seconds: float) -> None:
    rng = random.Random(9)
    block = memoryview(bytes(rng.getrandbits(8) for _ in range(4096)) * 1000)
    loop = asyncio.new_event_loop()
    pooled = hashed = python = rested = 0.0
    with ThreadPoolExecutor(2) as pool:
        t4 = start = clock()
        while t4 - start < seconds:
            n = rng.randrange(800_000, 4_000_000)
            parts = [block[:n], block[n // 2 :]]
            t0 = clock()
            digests = list(pool.map(digest, parts))  #: pool
            t1 = clock()
            digests.append(digest(block[: n // 2]))  #: hash
            t2 = clock()
            popular("".join(digests) * 36, 4)  #: python
            t3 = clock()
            loop.run_until_complete(asyncio.sleep(n * 6e-10))  #: rest
            t4 = clock()
            pooled, hashed = pooled + t1 - t0, hashed + t2 - t1
            python, rested = python + t3 - t2, rested + t4 - t3
    loop.close()
    stretches = {"pool": pooled, "hash": hashed, "python": python, "rest": rested}
    print(json.dumps({"loop_s": t4 - start, "stretches": stretches}))


if __name__ == "__main__":
    main(float(sys.argv[1]))
