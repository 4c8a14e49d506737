"""Character model. Training curve goes to a csv that the lab dashboard tails."""
import csv
import os
import tempfile
import torch
from torch import nn

VOCAB, HID, SEQ, BATCH = 64, 128, 16, 8


class CharModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, 32)
        self.rnn = nn.LSTM(32, HID, batch_first=True)
        self.head = nn.Linear(HID, VOCAB)

    def forward(self, x):
        h, _ = self.rnn(self.emb(x))
        return self.head(h)


def save(model, opt, path):
    torch.save({"model": model.state_dict(), "opt": opt.state_dict()}, path + ".tmp")
    with open(path + ".tmp", "rb") as f:
        os.fsync(f.fileno())
    os.replace(path + ".tmp", path)


def main():
    torch.manual_seed(1)
    text = torch.randint(0, VOCAB, (200_000,))
    model = CharModel()
    opt = torch.optim.Adam(model.parameters())
    crit = nn.CrossEntropyLoss()
    with tempfile.TemporaryDirectory() as out:
        log = open(os.path.join(out, "curve.csv"), "w", newline="")
        w = csv.writer(log)
        for it in range(400):
            starts = torch.randint(0, len(text) - SEQ - 1, (BATCH,))
            x = torch.stack([text[s:s + SEQ] for s in starts])
            y = torch.stack([text[s + 1:s + SEQ + 1] for s in starts])
            loss = crit(model(x).transpose(1, 2), y)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            w.writerow([it, loss.item()])
            log.flush()
            os.fsync(log.fileno())
            save(model, opt, os.path.join(out, "last.pt"))
            if it % 100 == 0:
                print("iter", it, loss.item(), flush=True)
        log.close()


if __name__ == "__main__":
    main()
