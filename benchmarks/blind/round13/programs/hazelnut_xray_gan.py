"""Generate X-ray pictures of hazelnuts with an adversarial network."""
import numpy as np
import torch
from torch import nn

SIDE = 32
LATENT = 64
BATCH = 48
STEPS = 78


def make_nuts(count, seed):
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[0:SIDE, 0:SIDE]
    nuts = np.zeros((count, 1, SIDE, SIDE), dtype=np.float32)
    for k in range(count):
        cy, cx = rng.uniform(14, 18, 2)
        outer, inner = rng.uniform(10, 13), rng.uniform(5, 9)
        r = np.hypot(yy - cy, (xx - cx) * rng.uniform(0.9, 1.1))
        nuts[k, 0] = (r < outer) * 0.6 + (r < inner) * 0.4
    return torch.from_numpy(nuts * 2 - 1 + rng.normal(0, 0.03, nuts.shape).astype(np.float32))


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(LATENT, 128 * 8 * 8)
        self.body = nn.Sequential(
            nn.BatchNorm2d(128), nn.ReLU(),
            nn.ConvTranspose2d(128, 96, 4, stride=2, padding=1), nn.BatchNorm2d(96), nn.ReLU(),
            nn.ConvTranspose2d(96, 48, 4, stride=2, padding=1), nn.BatchNorm2d(48), nn.ReLU(),
            nn.Conv2d(48, 1, 3, padding=1), nn.Tanh(),
        )

    def forward(self, z):
        return self.body(self.first(z).view(-1, 128, 8, 8))


def make_critic():
    return nn.Sequential(
        nn.Conv2d(1, 32, 4, stride=2, padding=1), nn.LeakyReLU(0.2),
        nn.Conv2d(32, 64, 4, stride=2, padding=1), nn.LeakyReLU(0.2),
        nn.Flatten(), nn.Linear(64 * 8 * 8, 1),
    )


def main():
    torch.manual_seed(9)
    torch.set_num_threads(2)
    nuts = make_nuts(1500, 1)
    generator, critic = Generator(), make_critic()
    opt_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    opt_d = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
    bce = nn.BCEWithLogitsLoss()
    real_label, fake_label = torch.ones(BATCH, 1), torch.zeros(BATCH, 1)
    for step in range(STEPS):
        real = nuts[torch.randint(0, len(nuts), (BATCH,))]
        fake = generator(torch.randn(BATCH, LATENT))
        opt_d.zero_grad()
        loss_d = bce(critic(real), real_label) + bce(critic(fake), fake_label)
        loss_d.backward()
        opt_d.step()

        fake = generator(torch.randn(BATCH, LATENT))
        opt_g.zero_grad()
        loss_g = bce(critic(fake), real_label)
        loss_g.backward()
        opt_g.step()
        if step % 26 == 25:
            print(f"step {step + 1}: critic {loss_d.item():.4f} generator {loss_g.item():.4f}")


if __name__ == "__main__":
    main()
