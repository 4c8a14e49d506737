# Denoising autoencoder on mel frames
import torch
from torch import nn

torch.manual_seed(7)
torch.autograd.set_detect_anomaly(False)  # had a nan in march


class Res(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.ln = nn.LayerNorm(d)
        self.f = nn.Linear(d, d)

    def forward(self, x):
        return x + torch.tanh(self.f(self.ln(x))) * 0.5


net = nn.Sequential(nn.Linear(80, 64), *[Res(64) for _ in range(20)], nn.Linear(64, 80))
opt = torch.optim.Adam(net.parameters(), 5e-4)
frames = torch.randn(20000, 80)

for step in range(1, 1001):
    x = frames[torch.randint(0, len(frames), (128,))]
    noisy = x + 0.1 * torch.randn_like(x)
    loss = (net(noisy) - x).square().mean()
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if step % 100 == 0:
        print(step, f"{loss.item():.4f}", flush=True)
