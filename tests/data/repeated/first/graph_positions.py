"""
verdict: set
stack:
  train(load_graphs("molecules.npz"), epochs=200)
  encode(graph["adj"], k=8)
  np.linalg.eigh(laplacian(adj))
call: encode(graph["adj"], k=8)
loop: for epoch in range(epochs)
why: each epoch goes through the same graphs and diagonalises the same Laplacians
"""
import numpy as np
import torch
from torch import nn


def load_graphs(path):
    archive = np.load(path, allow_pickle=True)
    return [{"adj": a, "y": float(y)} for a, y in zip(archive["adj"], archive["y"])]


def laplacian(a):
    degree = np.maximum(a.sum(axis=1), 1)
    scale = 1 / np.sqrt(degree)
    return np.eye(len(a)) - scale[:, None] * a * scale[None, :]


def encode(adj, k):
    values, vectors = np.linalg.eigh(laplacian(adj))
    return np.abs(vectors[:, 1 : k + 1])


def train(graphs, epochs):
    net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
    optim = torch.optim.Adam(net.parameters(), lr=1e-3)
    history = []
    for epoch in range(epochs):
        total = 0.0
        for graph in graphs:
            pe = torch.as_tensor(encode(graph["adj"], k=8), dtype=torch.float32)
            loss = (net(pe).mean() - graph["y"]) ** 2
            optim.zero_grad()
            loss.backward()
            optim.step()
            total += loss.item()
        history.append(total / len(graphs))
    return net, history


if __name__ == "__main__":
    train(load_graphs("molecules.npz"), epochs=200)
