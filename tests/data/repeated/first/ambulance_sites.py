"""
verdict: same
stack:
  rank_sites("roads.graphml", "sites.json", "calls.json")
  mean_response(roads, site, calls)
  travel_times(network)
  dict(nx.all_pairs_dijkstra_path_length(net, weight="seconds"))
call: travel_times(network)
loop: for site in sites
why: all travel times in the unchanged road network are computed again for each possible site
"""
import json

import networkx as nx


def read_json(path):
    with open(path) as handle:
        return json.load(handle)


def load_roads(path):
    graph = nx.read_graphml(path)
    for _, _, edge in graph.edges(data=True):
        edge["seconds"] = float(edge["length"]) / max(float(edge.get("speed", 30)), 5.0) * 3.6
    return graph


def travel_times(net):
    return dict(nx.all_pairs_dijkstra_path_length(net, weight="seconds"))


def mean_response(network, base, demands):
    times = travel_times(network)
    total = weight = 0.0
    for place, count in demands.items():
        total += count * times[base].get(place, 3600.0)
        weight += count
    return total / weight


def rank_sites(roads_path, sites_path, calls_path):
    roads = load_roads(roads_path)
    sites, calls = read_json(sites_path), read_json(calls_path)
    best = []
    for site in sites:
        best.append((mean_response(roads, site, calls), site))
        best.sort()
        del best[10:]
    return best


if __name__ == "__main__":
    for seconds, name in rank_sites("roads.graphml", "sites.json", "calls.json"):
        print(f"{name}\t{seconds:.0f}")
