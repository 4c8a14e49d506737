"""Two-layer GCN on a citation graph."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def make_graph(n, deg, seed=0):
    g = torch.Generator().manual_seed(seed)
    src = torch.arange(n).repeat_interleave(deg)
    dst = torch.randint(0, n, (n * deg,), generator=g)
    return torch.stack([src, dst])


def normalised(edges, n):
    a = torch.zeros(n, n)
    a[edges[0], edges[1]] = 1.0
    a[edges[1], edges[0]] = 1.0
    a += torch.eye(n)
    d = a.sum(1).pow(-0.5)
    return (d[:, None] * a * d[None, :]).to_sparse_csr()


class GCN(nn.Module):
    def __init__(self, fin, hidden, classes, n):
        super().__init__()
        self.n = n
        self.l1 = nn.Linear(fin, hidden)
        self.l2 = nn.Linear(hidden, classes)

    def forward(self, x, edges):
        if not hasattr(self, 'adj'):
            self.adj = normalised(edges, self.n)
        adj = self.adj
        h = F.relu(adj @ self.l1(x))
        h = F.dropout(h, 0.5, self.training)
        return adj @ self.l2(h)


if __name__ == "__main__":
    torch.manual_seed(0)
    n = 2708
    edges = make_graph(n, 8)
    x = torch.rand(n, 700)
    y = torch.randint(0, 7, (n,))
    model = GCN(700, 64, 7, n)
    opt = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for epoch in range(260):
        out = model(x, edges)
        loss = F.cross_entropy(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if epoch % 10 == 0:
            print(epoch, round(loss.item(), 4), flush=True)
