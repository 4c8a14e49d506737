"""Small GPT on transcribed monastery chronicles, tokenised with the GPT-2 vocabulary."""
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

GPU = torch.cuda.is_available()
device = "cuda" if GPU else "cpu"
torch.set_float32_matmul_precision("high")

VOCAB = 50257
WIDTH, HEADS, LAYERS = (768, 12, 4) if GPU else (64, 2, 2)
BATCH, CONTEXT = (32, 512) if GPU else (2, 64)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1 = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.proj = nn.Linear(WIDTH, WIDTH, bias=False)
        self.n2 = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH, bias=False)
        self.down = nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class ChronicleLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCAB, WIDTH)
        self.places = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCAB, bias=False)
        nn.init.normal_(self.tokens.weight, std=0.02)
        self.head.weight = self.tokens.weight

    def forward(self, ids):
        x = self.tokens(ids) + self.places.weight[:ids.shape[1]]
        return self.head(self.norm(self.blocks(x)))


def transcribed(gen, length=4_000_000):
    """Token ids of all chronicles in a row, frequent ones first as in real text."""
    u = torch.rand(length, generator=gen, device=device)
    return (u.pow(4) * 50257).long().clamp_(max=50256)


def main():
    torch.manual_seed(21)
    gen = torch.Generator(device=device).manual_seed(21)
    text = transcribed(gen)
    model = ChronicleLM().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1, fused=GPU)
    reach = torch.arange(CONTEXT + 1, device=device)

    budget_s = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    steps, shown = 0, float("nan")
    begin = time.perf_counter()
    while time.perf_counter() - begin < budget_s:
        at = torch.randint(0, len(text) - CONTEXT - 1, (BATCH, 1), generator=gen, device=device)
        chunk = text[at + reach]
        with torch.autocast(device, dtype=torch.bfloat16):
            logits = model(chunk[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), chunk[:, 1:].flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        steps += 1
        if steps % 20 == 0:
            shown = loss.item()
    print(f"done: {steps} steps, loss {shown:.3f}")


if __name__ == "__main__":
    main()
