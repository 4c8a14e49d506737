"""
verdict: set
stack:
  train(molecules, labels, EPOCHS)
  encode(graph, 16)
  np.linalg.eigh(lap)
call: encode(graph, 16)
loop: for epoch in range(epochs)
why: each epoch computes the Laplacian eigenvectors of the same graphs again
"""
import networkx as nx
import numpy as np
import torch
from torch import nn

EPOCHS = 100


def encode(g, k):
    lap = nx.normalized_laplacian_matrix(g).toarray()
    values, vectors = np.linalg.eigh(lap)
    spectrum = np.zeros(k, dtype=np.float32)
    spectrum[: min(k, len(values))] = values[:k]
    return torch.from_numpy(spectrum)


def train(graphs, targets, epochs):
    net = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(epochs):
        running = 0.0
        for graph, target in zip(graphs, targets):
            features = encode(graph, 16)
            loss = (net(features) - target).pow(2).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item()
        print(epoch, running / len(graphs))
    return net


if __name__ == "__main__":
    molecules = [nx.read_graphml(f"graphs/{i}.graphml") for i in range(500)]
    labels = torch.from_numpy(np.load("labels.npy")).float()
    train(molecules, labels, EPOCHS)
