"""An instrument read out every 20 ms exactly: a driver call that sleeps and holds the interpreter
lock, big-integer arithmetic, a Python filter, and sleep until the next tick."""

import ctypes
import json
import random
import sys
from time import perf_counter as clock
from time import sleep

KIND = {"driver": "sleeping", "bigint": "native", "filter": "python", "tick": "sleeping"}
usleep_holding_the_lock = ctypes.PyDLL(None).usleep


def low_pass(samples: list) -> float:
    state = 0.0
    for sample in samples:
        state += 0.1 * (sample - state)
        if state > 0.9:
            state = 0.9
    return state


def main(seconds: float) -> None:
    rng = random.Random(14)
    modulus = rng.getrandbits(1024) | 1
    samples = [rng.random() for _ in range(110_000)]
    drove = powered = filtered = ticked = 0.0
    t4 = start = clock()
    ticks = 0
    while t4 - start < seconds:
        n = rng.randrange(40_000, 110_000)
        base = rng.getrandbits(1000)
        ticks = max(ticks + 1, int((t4 - start) / 0.02))
        t0 = clock()
        usleep_holding_the_lock(3000)  #: driver
        t1 = clock()
        pow(base, modulus >> 1, modulus)  #: bigint
        t2 = clock()
        low_pass(samples[:n])  #: filter
        t3 = clock()
        sleep(max(0.0, start + ticks * 0.02 - t3))  #: tick
        t4 = clock()
        drove, powered = drove + t1 - t0, powered + t2 - t1
        filtered, ticked = filtered + t3 - t2, ticked + t4 - t3
    stretches = {"driver": drove, "bigint": powered, "filter": filtered, "tick": ticked}
    print(json.dumps({"loop_s": t4 - start, "stretches": stretches}))


if __name__ == "__main__":
    main(float(sys.argv[1]))
