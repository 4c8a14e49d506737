"""A viewer with a background thread in Python: the main thread computes alone, then the same
against the other thread, then hashes and sleeps while the other thread goes on."""

import hashlib
import json
import random
import sys
import threading
from time import perf_counter as clock
from time import sleep

KIND = {"alone": "python", "fight": "mixed", "hash": "native", "sleep": "sleeping"}


def compute(n: int) -> float:
    x = 0.3
    for _ in range(n):
        x = 3.7 * x * (1.0 - x)
    return x


def background(gate: threading.Event, done: threading.Event) -> None:
    while not done.is_set():
        gate.wait()
        compute(2000)


def main(seconds: float) -> None:
    rng = random.Random(11)
    block = bytes(50_000_000)
    gate, done = threading.Event(), threading.Event()
    thread = threading.Thread(target=background, args=(gate, done))
    thread.start()
    alone = fight = hashed = slept = 0.0
    t4 = start = clock()
    while t4 - start < seconds:
        n = rng.randrange(200_000, 900_000)
        gate.clear()
        t0 = clock()
        compute(n)  #: alone
        gate.set()
        t1 = clock()
        compute(n // 2)  #: fight
        t2 = clock()
        hashlib.sha256(memoryview(block)[: n * 50]).digest()  #: hash
        t3 = clock()
        sleep(n * 4e-8)  #: sleep
        t4 = clock()
        alone, fight = alone + t1 - t0, fight + t2 - t1
        hashed, slept = hashed + t3 - t2, slept + t4 - t3
    done.set()
    gate.set()
    thread.join()
    stretches = {"alone": alone, "fight": fight, "hash": hashed, "sleep": slept}
    print(json.dumps({"loop_s": t4 - start, "stretches": stretches}))


if __name__ == "__main__":
    main(float(sys.argv[1]))
