"""Event driven SEIR epidemic on a contact network, several replicates."""
import heapq
import random
import tracemalloc

PEOPLE = 24_000
CONTACTS = 10
REPLICATES = 14
BETA, SIGMA, GAMMA = 0.25, 0.35, 0.2

tracemalloc.start(10)


def network(rnd):
    neighbours = [[] for _ in range(PEOPLE)]
    for person in range(PEOPLE):
        for _ in range(CONTACTS // 2):
            other = rnd.randrange(PEOPLE) if rnd.random() < 0.3 else (person + rnd.randrange(1, 40)) % PEOPLE
            if other != person:
                neighbours[person].append(other)
                neighbours[other].append(person)
    return neighbours


def schedule(queue, rnd, person, now, neighbours):
    onset = now + rnd.expovariate(SIGMA)
    end = onset + rnd.expovariate(GAMMA)
    heapq.heappush(queue, (onset, 1, person, None))
    heapq.heappush(queue, (end, 2, person, None))
    for other in neighbours[person]:
        when = onset + rnd.expovariate(BETA)
        if when < end:
            heapq.heappush(queue, (when, 0, other, person))


def epidemic(neighbours, seed):
    rnd = random.Random(seed)
    state = ["S"] * PEOPLE
    infector = {}
    queue = [(0.0, 0, rnd.randrange(PEOPLE), None) for _ in range(10)]
    heapq.heapify(queue)
    curve, infectious, peak = [], 0, (0, 0.0)
    while queue:
        now, kind, person, source = heapq.heappop(queue)
        if kind == 0:
            if state[person] == "S":
                state[person] = "E"
                infector[person] = (source, now)
                schedule(queue, rnd, person, now, neighbours)
        elif kind == 1:
            state[person] = "I"
            infectious += 1
            peak = max(peak, (infectious, now))
        else:
            state[person] = "R"
            infectious -= 1
        curve.append((now, infectious))
    offspring = {}
    for person, (source, _) in infector.items():
        if source is not None:
            offspring[source] = offspring.get(source, 0) + 1
    return state.count("R"), peak, max(offspring.values(), default=0), len(curve)


def main():
    neighbours = network(random.Random(1))
    events = 0
    for replicate in range(REPLICATES):
        size, peak, worst, count = epidemic(neighbours, 100 + replicate)
        events += count
        print("replicate %d  size %d  peak %d on day %.1f  largest offspring %d"
              % (replicate, size, peak[0], peak[1], worst))
    print("events", events)
    print("memory traced:", tracemalloc.get_traced_memory()[1] > 0)


if __name__ == "__main__":
    main()
