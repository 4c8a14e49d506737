"""Convolutional VAE for rendered glyph sketches (Lightning)."""
import logging
import os
import warnings

import lightning as L
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

SIDE = 32


def sketch_glyphs(n=4000, seed=2):
    """Two or three soft strokes per picture."""
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[0:SIDE, 0:SIDE].astype(np.float32) / SIDE
    img = np.zeros((n, SIDE, SIDE), np.float32)
    for _ in range(3):
        cx, cy, th = rng.random((3, n, 1, 1)).astype(np.float32)
        th = th * np.float32(np.pi)
        d = np.abs((xx - cx) * np.sin(th) - (yy - cy) * np.cos(th))
        along = np.abs((xx - cx) * np.cos(th) + (yy - cy) * np.sin(th))
        img += np.exp(-(d / 0.05) ** 2) * (along < 0.3)
    return torch.from_numpy(np.clip(img, 0, 1))[:, None]


class GlyphVAE(L.LightningModule):
    def __init__(self, latent=24, width=16, beta=0.5):
        super().__init__()
        self.beta = beta
        self.enc = nn.Sequential(
            nn.Conv2d(1, width, 4, 2, 1), nn.GroupNorm(4, width), nn.SiLU(),
            nn.Conv2d(width, 2 * width, 4, 2, 1), nn.GroupNorm(4, 2 * width), nn.SiLU(),
            nn.Conv2d(2 * width, 2 * width, 3, 1, 1), nn.GroupNorm(4, 2 * width), nn.SiLU(), nn.Flatten())
        flat = 2 * width * (SIDE // 4) ** 2
        self.mu, self.logvar = nn.Linear(flat, latent), nn.Linear(flat, latent)
        self.up = nn.Linear(latent, flat)
        self.dec = nn.Sequential(
            nn.Unflatten(1, (2 * width, SIDE // 4, SIDE // 4)),
            nn.ConvTranspose2d(2 * width, width, 4, 2, 1), nn.GroupNorm(4, width), nn.SiLU(),
            nn.ConvTranspose2d(width, width, 4, 2, 1), nn.GroupNorm(4, width), nn.SiLU(),
            nn.Conv2d(width, 1, 3, 1, 1))
        self.history = []

    def forward(self, x):
        h = self.enc(x)
        mu, logvar = self.mu(h), self.logvar(h).clamp(-8, 8)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.dec(self.up(z)), mu, logvar

    def training_step(self, batch, _):
        (x,) = batch
        logit, mu, logvar = self(x)
        rec = F.binary_cross_entropy_with_logits(logit, x, reduction="none").sum((1, 2, 3)).mean()
        kl = 0.5 * (mu.pow(2) + logvar.exp() - 1 - logvar).sum(1).mean()
        loss = rec + self.beta * kl
        self.history.append((rec.detach(), kl.detach()))
        return loss

    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), lr=1e-3)
        sched = torch.optim.lr_scheduler.LinearLR(opt, 0.1, 1.0, total_iters=40)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": sched, "interval": "step"}}


def run():
    L.seed_everything(21, verbose=False)
    loader = DataLoader(TensorDataset(sketch_glyphs()), batch_size=48, shuffle=True, drop_last=True)
    model = GlyphVAE()
    trainer = L.Trainer(
        max_epochs=5, accelerator="cpu", logger=False, gradient_clip_val=5.0, detect_anomaly=True,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        default_root_dir=os.environ.get("TMPDIR", "."))
    trainer.fit(model, loader)
    tail = model.history[-20:]
    print("reconstruction %.1f  KL %.2f" % (np.mean([float(r) for r, _ in tail]), np.mean([float(k) for _, k in tail])))


if __name__ == "__main__":
    run()
