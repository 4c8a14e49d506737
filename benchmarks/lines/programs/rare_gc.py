"""A simulation of many small steps with rarer resets of a buffer, full garbage collections and
stalls. Very unequal on purpose: the stalls are about 2 % of the time."""

import gc
import json
import random
import sys
from time import perf_counter as clock
from time import sleep

KIND = {"step": "python", "reset": "native", "collect": "native", "stall": "sleeping"}


class Agent:
    def __init__(self, seat: int) -> None:
        self.seat = seat
        self.friends: list = [self]

    def move(self, rng: random.Random) -> None:
        self.seat = (self.seat + rng.getrandbits(4)) % 1009


def step(agents: list, rng: random.Random) -> None:
    for agent in agents:
        agent.move(rng)


def main(seconds: float) -> None:
    gc.disable()
    rng = random.Random(12)
    agents = [Agent(i) for i in range(60_000)]
    stepped = zeroed = collected = stalled = 0.0
    t4 = start = clock()
    while t4 - start < seconds:
        first = rng.randrange(50_000)
        luck = rng.random()
        t0 = clock()
        step(agents[first : first + rng.randrange(1000, 9000)], rng)  #: step
        t1 = t2 = t3 = t4 = clock()
        if luck < 0.01:
            gc.collect()  #: collect
            t2 = t3 = t4 = clock()
        elif luck < 0.11:
            b"\1" * 12_000_000  #: reset
            t3 = t4 = clock()
        elif luck > 0.996:
            sleep(0.003)  #: stall
            t4 = clock()
        stepped, collected = stepped + t1 - t0, collected + t2 - t1
        zeroed, stalled = zeroed + t3 - t2, stalled + t4 - t3
    stretches = {"step": stepped, "reset": zeroed, "collect": collected, "stall": stalled}
    print(json.dumps({"loop_s": t4 - start, "stretches": stretches}))


if __name__ == "__main__":
    main(float(sys.argv[1]))
