"""Train a plain MLP on precomputed embeddings, everything in memory."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(6000, 512)
y = torch.randint(0, 20, (6000,))
net = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 20))
opt = torch.optim.SGD(net.parameters(), 0.01)
for epoch in range(22):
    perm = torch.randperm(len(x))
    total = torch.zeros(())
    for i in range(0, len(x), 256):
        j = perm[i:i + 256]
        loss = nn.functional.cross_entropy(net(x[j]), y[j])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.detach()
    print(epoch, total.item() * 256 / len(x), flush=True)
