"""Turbine sensor autoencoder with early stopping (Lightning)."""
import logging
import os
import warnings
from pathlib import Path

import lightning as L
import numpy as np
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

OUT = Path(os.environ.get("TMPDIR", ".")) / "turbine_runs"
CHANNELS, LENGTH = 16, 256


def record(n, seed):
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 1, LENGTH, dtype=np.float32)
    speed = rng.uniform(8, 20, (n, 1, 1)).astype(np.float32)
    phase = rng.uniform(0, 6.28, (n, CHANNELS, 1)).astype(np.float32)
    order = rng.integers(1, 4, (1, CHANNELS, 1)).astype(np.float32)
    x = np.sin(2 * np.pi * speed * order * t + phase)
    x += 0.1 * rng.standard_normal(x.shape, dtype=np.float32)
    return TensorDataset(torch.from_numpy(x))


class SensorAE(L.LightningModule):
    def __init__(self, width=48, code=64):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(CHANNELS, width, 9, 2, 4), nn.GELU(),
            nn.Conv1d(width, 2 * width, 9, 2, 4), nn.GELU(),
            nn.Conv1d(2 * width, 2 * width, 9, 2, 4), nn.GELU(), nn.Flatten(),
            nn.Linear(2 * width * LENGTH // 8, code))
        self.decoder = nn.Sequential(
            nn.Linear(code, 2 * width * LENGTH // 8), nn.Unflatten(1, (2 * width, LENGTH // 8)), nn.GELU(),
            nn.ConvTranspose1d(2 * width, 2 * width, 8, 2, 3), nn.GELU(),
            nn.ConvTranspose1d(2 * width, width, 8, 2, 3), nn.GELU(),
            nn.ConvTranspose1d(width, CHANNELS, 8, 2, 3))

    def forward(self, x):
        return self.decoder(self.encoder(x))

    def training_step(self, batch, batch_idx):
        loss = nn.functional.mse_loss(self(batch[0]), batch[0])
        self.log("loss", loss, prog_bar=False)
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", nn.functional.mse_loss(self(batch[0]), batch[0]))

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=2e-3)
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=1)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": plateau, "monitor": "val_loss"}}


def main():
    L.seed_everything(8, verbose=False)
    train, val = record(2048, 1), record(256, 2)
    keep = ModelCheckpoint(dirpath=OUT, monitor="val_loss", save_top_k=1, save_weights_only=True)
    trainer = L.Trainer(max_epochs=5, accelerator="cpu", logger=False, default_root_dir=OUT,
                        callbacks=[keep, EarlyStopping("val_loss", patience=3)],
                        enable_progress_bar=False, enable_model_summary=False)
    model = SensorAE()
    trainer.fit(model, DataLoader(train, batch_size=64, shuffle=True, num_workers=0),
                DataLoader(val, batch_size=128, num_workers=0))
    print(f"epochs {trainer.current_epoch}, best validation loss {float(keep.best_model_score):.4f}")


if __name__ == "__main__":
    main()
