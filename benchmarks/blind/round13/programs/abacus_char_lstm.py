"""Learn the notation of abacus exercises letter by letter and write new ones."""
import numpy as np
import torch
from torch import nn

ALPHABET = "0123456789+-=; "
LENGTH = 64
BATCH = 64
STEPS = 230
WRITE = 2500


def make_exercises(count, seed):
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(count):
        a, b = rng.integers(0, 1000, 2)
        if rng.random() < 0.5:
            lines.append(f"{a}+{b}={a + b}; ")
        else:
            lines.append(f"{max(a, b)}-{min(a, b)}={abs(a - b)}; ")
    text = "".join(lines)
    return torch.tensor([ALPHABET.index(c) for c in text])


class Writer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(len(ALPHABET), 32)
        self.lstm = nn.LSTM(32, 128, num_layers=1, batch_first=True)
        self.out = nn.Linear(128, len(ALPHABET))

    def forward(self, ids, state=None):
        hidden, state = self.lstm(self.embed(ids), state)
        return self.out(hidden), state


def write(model, count, gen):
    model.eval()
    ids = torch.zeros(1, 1, dtype=torch.long)
    state, letters = None, []
    with torch.inference_mode():
        for _ in range(count):
            logits, state = model(ids, state)
            ids = torch.multinomial(torch.softmax(logits[0, -1], 0), 1, generator=gen)[None]
            letters.append(ids[0, 0])
    return "".join(ALPHABET[k] for k in torch.stack(letters).tolist())


def main():
    torch.manual_seed(2)
    torch.set_num_threads(2)
    text = make_exercises(20000, 1)
    model = Writer()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    gen = torch.Generator().manual_seed(3)
    offsets = torch.arange(LENGTH + 1)
    for step in range(STEPS):
        start = torch.randint(0, len(text) - LENGTH - 1, (BATCH, 1), generator=gen)
        block = text[start + offsets]
        logits, _ = model(block[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), block[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 46 == 45:
            print(f"step {step + 1}: loss {loss.item():.4f}", flush=True)
    sample = write(model, WRITE, gen)
    print(f"wrote {len(sample)} letters, {sample.count(';')} exercises: {sample[:50]}")


if __name__ == "__main__":
    main()
