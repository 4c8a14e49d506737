"""
verdict: none
stack:
  layout(nx.read_edgelist("citations.txt"))
  crowd(places, node)
  cKDTree(list(positions.values()))
why: the same nodes are visited in each round, but their positions in the dict are moved after each call
"""
import networkx as nx
import numpy as np
from scipy.spatial import cKDTree

RADIUS = 0.1


def crowd(positions, name):
    tree = cKDTree(list(positions.values()))
    near = tree.query_ball_point(positions[name], RADIUS)
    away = positions[name] - tree.data[near].mean(axis=0)
    return away * len(near)


def pull(graph, positions, name):
    links = list(graph[name])
    if not links:
        return np.zeros(2)
    return np.mean([positions[m] for m in links], axis=0) - positions[name]


def move(positions, name, vector, step):
    positions[name] = positions[name] + step * vector


def layout(graph, rounds=50):
    rng = np.random.default_rng(4)
    places = {node: rng.random(2) for node in graph}
    step = 0.2
    for r in range(rounds):
        for node in graph:
            force = pull(graph, places, node) + crowd(places, node)
            move(places, node, force, step)
        step *= 0.95
    return places


if __name__ == "__main__":
    np.savez("places.npz", **layout(nx.read_edgelist("citations.txt")))
