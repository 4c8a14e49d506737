"""Sentiment of product reviews with a small transformer."""
import random
import torch
from torch import nn

MAX_LEN = 160
PAD = 0


class Reviews:
    def __init__(self, n, seed):
        r = random.Random(seed)
        self.rows = []
        for _ in range(n):
            length = min(MAX_LEN, int(r.lognormvariate(3.2, 0.4)))
            self.rows.append(([r.randrange(1, 5000) for _ in range(length)], r.randrange(2)))
        self.rows.sort(key=lambda row: len(row[0]))

    def batches(self, size):
        starts = list(range(0, len(self.rows), size))
        random.shuffle(starts)
        for s in starts:
            rows = self.rows[s:s + size]
            width = max(len(t) for t, _ in rows)
            ids = torch.full((len(rows), width), PAD)
            for k, (tok, _) in enumerate(rows):
                ids[k, :len(tok)] = torch.tensor(tok)
            yield ids, torch.tensor([lab for _, lab in rows])


class Encoder(nn.Module):
    def __init__(self, d=64):
        super().__init__()
        self.emb = nn.Embedding(5000, d, padding_idx=PAD)
        self.pos = nn.Parameter(torch.zeros(MAX_LEN, d))
        layer = nn.TransformerEncoderLayer(d, 4, 128, batch_first=True, dropout=0.0)
        self.enc = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(d, 2)

    def forward(self, ids):
        mask = ids == PAD
        h = self.enc(self.emb(ids) + self.pos[: ids.shape[1]], src_key_padding_mask=mask)
        h = h.masked_fill(mask[..., None], 0).sum(1) / (~mask).sum(1, keepdim=True)
        return self.out(h)


if __name__ == "__main__":
    random.seed(0)
    torch.manual_seed(0)
    data = Reviews(1200, 1)
    model = Encoder()
    opt = torch.optim.AdamW(model.parameters(), 3e-4)
    for epoch in range(7):
        for i, (ids, lab) in enumerate(data.batches(24)):
            loss = nn.functional.cross_entropy(model(ids), lab)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print("epoch", epoch, loss.item(), flush=True)
