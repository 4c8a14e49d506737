"""How a rumour spreads through villages: many runs on a contact network, in two processes."""
import multiprocessing as mp
import random

import numpy as np

PEOPLE = 4_000
RUNS_PER_WORKER = 10
KNOWS = 8
FORGETS_AFTER = 30
TELLS = 0.022


def contact_network(rng):
    """A ring of neighbours, some of whom moved to another village."""
    friends = [[] for _ in range(PEOPLE)]
    for person in range(PEOPLE):
        for hop in range(1, KNOWS // 2 + 1):
            other = (person + hop) % PEOPLE
            if rng.random() < 0.15:
                other = rng.randrange(PEOPLE)
            friends[person].append(other)
            friends[other].append(person)
    return friends


def spread(friends, ages, rng, report):
    """One run, day by day; report is called with the day and the age group of each new listener."""
    heard = {person: 0 for person in rng.sample(range(PEOPLE), 5)}
    active = list(heard)
    day = 0
    while active:
        day += 1
        fresh = []
        for person in active:
            for friend in friends[person]:
                if rng.random() < TELLS and friend not in heard:
                    heard[friend] = day
                    fresh.append(friend)
                    report(day, ages[friend])
        active = [p for p in active if day - heard[p] < FORGETS_AFTER] + fresh
    return len(heard)


def worker(number, friends, ages, tally, lock, sizes):
    def report(day, age):
        key = (day // 5, age)
        with lock:
            tally[key] = tally.get(key, 0) + 1

    for run in range(RUNS_PER_WORKER):
        rng = random.Random(1000 * number + run)
        reached = spread(friends, ages, rng, report)
        sizes[number * RUNS_PER_WORKER + run] = reached


def main():
    rng = random.Random(77)
    friends = contact_network(rng)
    ages = [rng.choice(("child", "adult", "adult", "old")) for _ in range(PEOPLE)]
    with mp.Manager() as manager:
        tally = manager.dict()
        lock = manager.Lock()
        sizes = mp.Array("i", 2 * RUNS_PER_WORKER)
        workers = [
            mp.Process(target=worker, args=(n, friends, ages, tally, lock, sizes)) for n in range(2)
        ]
        for process in workers:
            process.start()
        for process in workers:
            process.join()
        counts = dict(tally)

    days = 5 * max(day for day, _ in counts)
    curve = np.zeros(days // 5 + 1)
    for (day, _), count in counts.items():
        curve[day] += count
    print("runs", len(sizes), "mean reach %.1f" % np.mean(sizes[:]))
    print("listeners", int(curve.sum()), "peak about day", 5 * int(curve.argmax()))
    for age in ("child", "adult", "old"):
        print(age, sum(c for (_, a), c in counts.items() if a == age))


if __name__ == "__main__":
    main()
