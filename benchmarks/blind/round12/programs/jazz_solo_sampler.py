"""Train a note model on solos in the style of a trio and let it improvise."""
import numpy as np
import torch
from torch import nn

NOTES = 90
LENGTH = 96
TUNES = 640
WIDTH = 256
BATCH = 64
EPOCHS = 3
SOLOS = 32
SOLO_LENGTH = 4000


def trio(rng):
    scale = np.array([0, 2, 3, 5, 7, 9, 10])
    tunes = np.empty((TUNES, LENGTH), np.int64)
    for k in range(TUNES):
        degree, root = 14, int(rng.integers(0, 12))
        for t in range(LENGTH):
            degree = int(np.clip(degree + rng.integers(-2, 3), 0, 34))
            tunes[k, t] = min(NOTES - 1, root + 12 * (degree // 7) + scale[degree % 7])
    return torch.from_numpy(tunes)


class Improviser(nn.Module):
    def __init__(self):
        super().__init__()
        self.note = nn.Embedding(NOTES, 64)
        self.rnn = nn.GRU(64, WIDTH, num_layers=2, batch_first=True)
        self.head = nn.Linear(WIDTH, NOTES)

    def forward(self, notes, memory=None):
        h, memory = self.rnn(self.note(notes), memory)
        return self.head(h), memory


@torch.inference_mode()
def improvise(net, generator):
    note = torch.full((SOLOS, 1), 24)
    memory = None
    solo = torch.empty(SOLOS, SOLO_LENGTH, dtype=torch.long)
    for t in range(SOLO_LENGTH):
        logits, memory = net(note, memory)
        p = torch.softmax(logits[:, 0] / 0.9, dim=1)
        note = torch.multinomial(p, 1, generator=generator)
        solo[:, t] = note[:, 0]
    return solo


def main():
    torch.manual_seed(65)
    tunes = trio(np.random.default_rng(65))
    net = Improviser()
    opt = torch.optim.Adam(net.parameters(), 2e-3)
    for epoch in range(EPOCHS):
        order = torch.randperm(TUNES)
        total = 0.0
        for start in range(0, TUNES, BATCH):
            notes = tunes[order[start:start + BATCH]]
            logits, _ = net(notes[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), notes[:, 1:].flatten())
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total * BATCH / TUNES:.4f}")
    net.eval()
    solo = improvise(net, torch.Generator().manual_seed(66))
    leap = (solo[:, 1:] - solo[:, :-1]).abs().float().mean()
    print(f"improvised {solo.numel()} notes, mean leap {leap:.3f} semitones")


if __name__ == "__main__":
    main()
