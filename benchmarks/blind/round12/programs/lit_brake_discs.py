"""Remaining life of brake discs from depot records, with Lightning."""
import shutil
import tempfile
import warnings

import lightning as L
import numpy as np
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
DISCS = 20000
SENSORS = 32
BATCH = 128


class DiscLife(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.disc = nn.Embedding(DISCS, 64)
        layers = [nn.Linear(SENSORS + 64, 128), nn.SiLU()]
        for _ in range(14):
            layers += [nn.Linear(128, 128), nn.LayerNorm(128), nn.SiLU()]
        self.body = nn.Sequential(*layers, nn.Linear(128, 2))

    def forward(self, disc, seen):
        mean, raw = self.body(torch.cat([self.disc(disc), seen], dim=1)).unbind(1)
        return mean, nn.functional.softplus(raw) + 1e-3

    def training_step(self, batch, _):
        disc, seen, life = batch
        mean, spread = self(disc, seen)
        loss = (torch.log(spread) + 0.5 * ((life - mean) / spread) ** 2).mean()
        self.log("train_nll", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, _):
        disc, seen, life = batch
        mean, _ = self(disc, seen)
        self.log("val_mae", (life - mean).abs().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-3)


def depot(rng, rows):
    disc = rng.integers(0, DISCS, size=rows)
    seen = rng.normal(size=(rows, SENSORS))
    wear = 0.4 * (disc % 7) / 7 + 0.3 * np.tanh(seen[:, 0] * seen[:, 1]) + 0.2 * seen[:, 2]
    life = wear + rng.normal(0, 0.1, size=rows)
    return TensorDataset(torch.from_numpy(disc), torch.from_numpy(seen).float(),
                         torch.from_numpy(life).float())


def main():
    L.seed_everything(6, verbose=False)
    rng = np.random.default_rng(6)
    folder = tempfile.mkdtemp(prefix="discs_")
    train = DataLoader(depot(rng, 9600), batch_size=BATCH, shuffle=True)
    held = DataLoader(depot(rng, 2560), batch_size=512)
    keeper = ModelCheckpoint(dirpath=folder, every_n_train_steps=3, save_top_k=1)
    trainer = L.Trainer(
        accelerator="cpu",
        devices=1,
        max_epochs=5,
        logger=False,
        callbacks=[keeper],
        detect_anomaly=True,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
    )
    model = DiscLife()
    trainer.fit(model, train, held)
    seen = trainer.callback_metrics
    print(f"steps {trainer.global_step} nll {float(seen['train_nll']):.4f}")
    print(f"held-out mean error {float(seen['val_mae']):.4f}")
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
