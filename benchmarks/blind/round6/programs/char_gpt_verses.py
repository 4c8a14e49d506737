"""Character language model on generated verses, a small GPT in plain PyTorch."""
import numpy as np
import torch
from torch import nn

CONTEXT = 128
WIDTH = 192
LAYERS = 3
BATCH = 16
STEPS = 64
SYLLABLES = "lo ra me ti sun ka ver dal ino eth ar quo mis pel ond".split()


def write_verses(rng, n_lines):
    lines = []
    for _ in range(n_lines):
        words = []
        for _ in range(int(rng.integers(4, 8))):
            first = int(rng.integers(len(SYLLABLES)))
            words.append(SYLLABLES[first] + SYLLABLES[(first * 7 + 3) % len(SYLLABLES)])
        lines.append(" ".join(words))
    return "\n".join(lines)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_a, self.norm_b = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.mix = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.feed = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, z):
        b, t, _ = z.shape
        q, k, v = self.qkv(self.norm_a(z)).view(b, t, 3, 6, WIDTH // 6).permute(2, 0, 3, 1, 4)
        a = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        z = z + self.mix(a.transpose(1, 2).reshape(b, t, WIDTH))
        return z + self.feed(self.norm_b(z))


class VerseModel(nn.Module):
    def __init__(self, n_chars):
        super().__init__()
        self.chars = nn.Embedding(n_chars, WIDTH)
        self.places = nn.Parameter(0.02 * torch.randn(CONTEXT, WIDTH))
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.head = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, n_chars))

    def forward(self, x):
        return self.head(self.blocks(self.chars(x) + self.places[: x.shape[1]]))


def main():
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    text = write_verses(rng, 4000)
    alphabet = sorted(set(text))
    code = {c: i for i, c in enumerate(alphabet)}
    data = torch.tensor([code[c] for c in text])
    model = VerseModel(len(alphabet))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    span = torch.arange(CONTEXT + 1)
    recent = []
    for step in range(STEPS):
        first = torch.from_numpy(rng.integers(0, len(data) - CONTEXT - 1, BATCH))
        chunk = data[first[:, None] + span]
        logit = model(chunk[:, :-1])
        loss = nn.functional.cross_entropy(logit.flatten(0, 1), chunk[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        recent.append(loss.item())
        if (step + 1) % 16 == 0:
            print(f"step {step + 1:3d}  loss {np.mean(recent[-16:]):.4f}", flush=True)
    print(f"{len(text)} characters, bits per character {np.mean(recent[-5:]) / np.log(2):.3f}")


if __name__ == "__main__":
    main()
