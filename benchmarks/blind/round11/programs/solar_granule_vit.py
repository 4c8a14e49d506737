"""Masked-patch pretraining of a vision transformer on solar granulation frames."""
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

GPU = torch.cuda.is_available()
device = "cuda" if GPU else "cpu"
torch.set_float32_matmul_precision("high")
SIDE, PATCH = 128, 16
TOKENS = (SIDE // PATCH) ** 2
WIDTH, HEADS, LAYERS = (2048, 16, 8) if GPU else (64, 2, 2)
BATCH = 256 if GPU else 4
FRAMES = 2_600_000 if GPU else 400


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.proj = nn.Linear(WIDTH, WIDTH, bias=False)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class GranuleViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Linear(PATCH * PATCH, WIDTH)
        self.place = nn.Parameter(torch.randn(TOKENS, WIDTH) * 0.02)
        self.hidden = nn.Parameter(torch.zeros(WIDTH))
        self.layers = nn.Sequential(*(Layer() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)
        self.out = nn.Linear(WIDTH, PATCH * PATCH)

    def forward(self, patches, hide):
        x = torch.where(hide[..., None], self.hidden, self.patch(patches)) + self.place
        return self.out(self.norm(self.layers(x)))


def cut(frames):
    n, k = len(frames), SIDE // PATCH
    x = frames.view(n, k, PATCH, k, PATCH).transpose(2, 3).reshape(n, TOKENS, PATCH * PATCH)
    return x.float().div_(127.5).sub_(1.0)


def main():
    torch.manual_seed(11)
    movie = torch.empty((FRAMES, SIDE, SIDE), dtype=torch.uint8, device=device)
    for part in movie.split(100_000):
        part.random_(0, 256)
    with torch.device(device):
        model = GranuleViT()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=GPU)

    budget_s = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    steps, shown = 0, float("nan")
    begin = time.perf_counter()
    while time.perf_counter() - begin < budget_s:
        rows = torch.randint(0, FRAMES, (BATCH,), device=device)
        patches = cut(movie[rows])
        hide = torch.rand(BATCH, TOKENS, device=device) < 0.6
        with torch.autocast(device, dtype=torch.bfloat16):
            guess = model(patches, hide)
        wrong = (guess.float() - patches).square().mean(-1)
        loss = (wrong * hide).sum() / hide.sum()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        steps += 1
        if steps % 5 == 0:
            shown = loss.item()
    print(f"done: {steps} steps, loss {shown:.4f}")


if __name__ == "__main__":
    main()
