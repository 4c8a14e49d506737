"""Read embossed braille strips with a small convolutional CTC reader."""
import numpy as np
import torch
from torch import nn

LETTERS = 26
PER_STRIP = 8
CELL = 16
EPOCHS = 9
BATCH = 50


def emboss(count, rng):
    cells = (rng.random((LETTERS + 1, 16, CELL)) > 0.72).astype(np.float32)
    text = rng.integers(1, LETTERS + 1, size=(count, PER_STRIP))
    strips = np.concatenate([cells[text[:, k]] for k in range(PER_STRIP)], axis=2)
    strips += rng.normal(0.0, 0.25, size=strips.shape).astype(np.float32)
    return torch.from_numpy(strips[:, None].astype(np.float32)), torch.from_numpy(text)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.front = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 24, 3, stride=(2, 1), padding=1), nn.ReLU(),
        )
        self.rnn = nn.GRU(24 * 4, 96, bidirectional=True)
        self.head = nn.Linear(192, LETTERS + 1)

    def forward(self, x):
        z = self.front(x)
        z = z.permute(3, 0, 1, 2).flatten(2)
        z, _ = self.rnn(z)
        return self.head(z).log_softmax(-1)


def transcribe(log_p):
    steps, batch, _ = log_p.shape
    texts = []
    for b in range(batch):
        text, last = [], 0
        for t in range(steps):
            symbol = log_p[t, b].argmax().item()
            if symbol != last and symbol != 0:
                text.append(symbol)
            last = symbol
        texts.append(text)
    return texts


def proofread(model, strips, text):
    model.eval()
    right = 0
    with torch.no_grad():
        for start in range(0, len(strips), 250):
            found = transcribe(model(strips[start:start + 250]))
            wanted = text[start:start + 250].tolist()
            right += sum(sum(a == b for a, b in zip(f, w)) for f, w in zip(found, wanted))
    model.train()
    return right / text.numel()


def main():
    rng = np.random.default_rng(31)
    torch.manual_seed(31)
    strips, text = emboss(3000, rng)
    train, held = slice(0, 1500), slice(1500, 3000)
    model = Reader()
    opt = torch.optim.Adam(model.parameters(), 2e-3)
    ctc = nn.CTCLoss()
    in_len = torch.full((BATCH,), 64, dtype=torch.long)
    out_len = torch.full((BATCH,), PER_STRIP, dtype=torch.long)
    x, y = strips[train], text[train]
    for epoch in range(EPOCHS):
        order = torch.randperm(len(x))
        total = 0.0
        for start in range(0, len(x), BATCH):
            pick = order[start:start + BATCH]
            loss = ctc(model(x[pick]), y[pick], in_len, out_len)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        share = proofread(model, strips[held], text[held])
        print(f"epoch {epoch} loss {total * BATCH / len(x):.3f} letters right {share:.3f}")


if __name__ == "__main__":
    main()
