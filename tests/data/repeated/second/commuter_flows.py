"""
verdict: same
stack:
  gravity(network, trips, beta=0.08)
  travel_time(graph, trip["from"], trip["to"])
  dict(nx.all_pairs_dijkstra_path_length(roads, weight="minutes"))
call: dict(nx.all_pairs_dijkstra_path_length(roads, weight="minutes"))
loop: for trip in table.to_dict("records")
why: all shortest paths of the unchanged network are computed again for each pair of places
"""
import math

import networkx as nx
import pandas as pd


def read_network(path):
    edges = pd.read_csv(path)
    graph = nx.Graph()
    for row in edges.itertuples():
        graph.add_edge(row.a, row.b, minutes=row.km / row.kmh * 60)
    return graph


def travel_time(roads, origin, destination):
    times = dict(nx.all_pairs_dijkstra_path_length(roads, weight="minutes"))
    return times[origin].get(destination, math.inf)


def gravity(graph, table, beta):
    predicted = []
    for trip in table.to_dict("records"):
        minutes = travel_time(graph, trip["from"], trip["to"])
        flow = trip["workers"] * trip["jobs"] * math.exp(-beta * minutes)
        predicted.append(flow)
    scale = table["observed"].sum() / sum(predicted)
    return table.assign(predicted=[scale * p for p in predicted])


if __name__ == "__main__":
    network = read_network("roads.csv")
    trips = pd.read_csv("trips.csv")
    result = gravity(network, trips, beta=0.08)
    print(result[["observed", "predicted"]].corr())
