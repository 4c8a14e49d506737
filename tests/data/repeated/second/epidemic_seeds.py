"""
verdict: none
stack:
  ensemble(contacts, runs=400)
  outbreak(graph, beta=0.04, gamma=0.1)
  network.neighbors(person)
why: the global generator is seeded with the number of the run, so the same arguments give another outbreak
"""
import random

import networkx as nx
import numpy as np


def outbreak(network, beta, gamma):
    infected = {random.choice(list(network))}
    recovered = set()
    curve = []
    while infected:
        new, healed = set(), set()
        for person in infected:
            for contact in network.neighbors(person):
                if contact not in infected and contact not in recovered and random.random() < beta:
                    new.add(contact)
            if random.random() < gamma:
                healed.add(person)
        infected = (infected | new) - healed
        recovered |= healed
        curve.append(len(infected))
    return curve, len(recovered)


def reset(run):
    random.seed(1000 + run)


def ensemble(graph, runs):
    sizes = np.empty(runs)
    peaks = np.empty(runs)
    for run in range(runs):
        reset(run)
        curve, sizes[run] = outbreak(graph, beta=0.04, gamma=0.1)
        peaks[run] = max(curve)
    return sizes, peaks


if __name__ == "__main__":
    contacts = nx.read_edgelist("contacts.txt")
    sizes, peaks = ensemble(contacts, runs=400)
    print(np.median(sizes), np.quantile(peaks, [0.05, 0.95]))
