"""Attribute speeches in parliament to parties, with Accelerate."""
import os
import shutil
import tempfile

import numpy as np
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader

VOCAB = 24000
PARTIES = 6
SPEECHES = 1600
LIMIT = 192
BATCH = 16


def hansard(rng):
    speeches = []
    for _ in range(SPEECHES):
        party = int(rng.integers(0, PARTIES))
        n = int(np.clip(rng.lognormal(3.7, 0.35), 12, LIMIT))
        words = rng.zipf(1.3, size=n) % VOCAB
        own = rng.random(n) < 0.25
        words[own] = VOCAB // 2 + party * 300 + rng.integers(0, 300, size=int(own.sum()))
        speeches.append((np.maximum(words, 1), party))
    return speeches


def collate(items):
    width = LIMIT
    ids = torch.zeros(len(items), width, dtype=torch.long)
    for k, (words, _) in enumerate(items):
        ids[k, :len(words)] = torch.from_numpy(words)
    return {"ids": ids, "party": torch.tensor([party for _, party in items])}


class SpeechNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCAB, 128, padding_idx=0)
        self.place = nn.Parameter(0.02 * torch.randn(LIMIT, 128))
        layer = nn.TransformerEncoderLayer(128, 4, 384, dropout=0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(128, PARTIES)

    def forward(self, ids):
        gap = ids == 0
        z = self.words(ids) + self.place[:ids.shape[1]]
        z = self.body(z, src_key_padding_mask=gap)
        keep = (~gap).unsqueeze(-1).to(z.dtype)
        return self.head((z * keep).sum(1) / keep.sum(1))


def main():
    torch.manual_seed(77)
    folder = tempfile.mkdtemp(prefix="hansard_")
    accelerator = Accelerator(cpu=True)
    loader = DataLoader(hansard(np.random.default_rng(77)), batch_size=BATCH, shuffle=True,
                        collate_fn=collate)
    net = SpeechNet()
    opt = torch.optim.AdamW(net.parameters(), 1e-3)
    net, opt, loader = accelerator.prepare(net, opt, loader)
    step = 0
    for epoch in range(1):
        total, right = 0.0, 0
        for batch in loader:
            logits = net(batch["ids"])
            loss = nn.functional.cross_entropy(logits, batch["party"])
            opt.zero_grad()
            accelerator.backward(loss)
            opt.step()
            total += loss.item()
            right += (logits.argmax(1) == batch["party"]).sum().item()
            step += 1
            if step % 3 == 0:
                accelerator.save_state(os.path.join(folder, "latest"))
            if step % 25 == 0:
                print(f"step {step} loss {total / 25:.4f} right {right / (25 * BATCH):.3f}")
                total, right = 0.0, 0
    print(f"finished epoch {epoch} after {step} steps")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
