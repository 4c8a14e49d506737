"""A consumer: waits on a queue, on an event and for a lock that a sleeping thread holds, and works
a little in Python between; nothing computes while it waits."""

import json
import queue
import random
import sys
import threading
from time import perf_counter as clock
from time import sleep

KIND = {"queue": "lock", "event": "lock", "lock": "lock", "python": "python"}


def produce(orders: queue.Queue, inbox: queue.Queue, lock: threading.Lock) -> None:
    for delay in iter(orders.get, None):
        sleep(delay)
        with lock:
            inbox.put([delay] * 500)
            sleep(delay)


def smooth(values: list, rounds: int) -> list:
    for _ in range(rounds):
        values = [(a + b) / 2 for a, b in zip(values, values[1:])]
    return values


def main(seconds: float) -> None:
    rng = random.Random(10)
    orders: queue.Queue = queue.Queue()
    inbox: queue.Queue = queue.Queue()
    lock, never = threading.Lock(), threading.Event()
    producer = threading.Thread(target=produce, args=(orders, inbox, lock))
    producer.start()
    queued = held = python = waited = 0.0
    t4 = start = clock()
    while t4 - start < seconds:
        delay = rng.uniform(0.0003, 0.0016)
        orders.put(delay)
        t0 = clock()
        values = inbox.get()  #: queue
        t1 = clock()
        lock.acquire()  #: lock
        t2 = clock()
        lock.release()
        smooth(values, 25)  #: python
        t3 = clock()
        never.wait(delay / 3)  #: event
        t4 = clock()
        queued, held = queued + t1 - t0, held + t2 - t1
        python, waited = python + t3 - t2, waited + t4 - t3
    orders.put(None)
    producer.join()
    stretches = {"queue": queued, "lock": held, "python": python, "event": waited}
    print(json.dumps({"loop_s": t4 - start, "stretches": stretches}))


if __name__ == "__main__":
    main(float(sys.argv[1]))
