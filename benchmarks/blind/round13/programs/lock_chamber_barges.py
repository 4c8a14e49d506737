"""Queues of barges on a chain of river locks: a discrete-event simulation over many years."""
import heapq
import random
from collections import deque

LOCKS = 9
BARGES = 380_000
ARRIVE, READY, LEAVE, NEW = 0, 1, 2, 3


class Lock:
    __slots__ = ("waiting", "level", "busy", "served", "turns", "wait")

    def __init__(self):
        self.waiting = (deque(), deque())
        self.level = 0
        self.busy = False
        self.served = 0
        self.turns = 0
        self.wait = 0.0


def simulate(seed):
    rng = random.Random(seed)
    expovariate, uniform = rng.expovariate, rng.random
    push, pop = heapq.heappush, heapq.heappop
    locks = [Lock() for _ in range(LOCKS)]
    events = [(0.0, 0, NEW, 0, 0, 0.0)]
    order = 1
    barges, trips, total = 0, 0, 0.0

    def start(place, now):
        """Let the next barge in, on the side where the water stands if somebody waits there."""
        nonlocal order
        lock = locks[place]
        side = lock.level
        fill = 0.0
        if not lock.waiting[side]:
            if not lock.waiting[1 - side]:
                lock.busy = False
                return
            side = 1 - side
            fill = 7.5
            lock.turns += 1
        arrived, born = lock.waiting[side].popleft()
        lock.busy = True
        lock.level = 1 - side
        lock.wait += now - arrived
        lock.served += 1
        push(events, (now + fill + 9.0 + 3.0 * uniform(), order, READY, place, side, born))
        order += 1

    while events:
        now, _, kind, place, side, born = pop(events)
        if kind == ARRIVE:
            lock = locks[place]
            lock.waiting[side].append((now, born))
            if not lock.busy:
                start(place, now)
        elif kind == READY:
            following = place + 1 if side == 0 else place - 1
            if 0 <= following < LOCKS:
                push(events, (now + 60.0 + 20.0 * uniform(), order, ARRIVE, following, side, born))
            else:
                push(events, (now + 1.0, order, LEAVE, place, side, born))
            order += 1
            start(place, now)
        elif kind == LEAVE:
            trips += 1
            total += now - born
        else:
            side = barges & 1
            push(events, (now, order, ARRIVE, 0 if side == 0 else LOCKS - 1, side, now))
            order += 1
            barges += 1
            if barges < BARGES:
                push(events, (now + expovariate(1 / 32.0), order, NEW, 0, 0, 0.0))
                order += 1
    return locks, trips, total


def main():
    locks, trips, total = simulate(1820)
    print("barges through:", trips)
    print("mean trip: %.1f min" % (total / trips))
    for place in (0, LOCKS // 2, LOCKS - 1):
        lock = locks[place]
        print("lock %d: mean wait %.2f min, empty turns %.3f" % (place, lock.wait / lock.served, lock.turns / lock.served))


if __name__ == "__main__":
    main()
