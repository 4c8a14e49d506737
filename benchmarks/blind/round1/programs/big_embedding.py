"""Train word vectors for a while, then write the full state once at the end."""
import os
import tempfile
import torch
from torch import nn

torch.manual_seed(0)
V, D = 160_000, 128
emb = nn.Embedding(V, D, sparse=True)
ctx = nn.Embedding(V, D, sparse=True)
opt = torch.optim.SparseAdam(list(emb.parameters()) + list(ctx.parameters()), 0.01)
for step in range(1, 621):
    a = torch.randint(0, V, (512,))
    b = torch.randint(0, V, (512,))
    neg = torch.randint(0, V, (512, 20))
    e = emb(a)
    pos = (e * ctx(b)).sum(1)
    ng = (ctx(neg) @ e[..., None])[..., 0]
    loss = -(nn.functional.logsigmoid(pos).mean() + nn.functional.logsigmoid(-ng).mean())
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 60 == 0:
        print(step, loss.item(), flush=True)
with tempfile.TemporaryDirectory() as d:
    path = os.path.join(d, "final.pt")
    torch.save({"emb": emb.state_dict(), "ctx": ctx.state_dict(), "opt": opt.state_dict()}, path)
    with open(path, "rb") as f:
        os.fsync(f.fileno())
    print("saved", os.path.getsize(path) >> 20, "MiB")
