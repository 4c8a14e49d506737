"""Estimate crop vigour from multispectral plots of a field trial (Lightning)."""
import logging
import tempfile
import warnings

import lightning as L
import numpy as np
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
BANDS = 5
SIDE = 32


def make_plots(count, seed):
    rng = np.random.default_rng(seed)
    vigor = rng.uniform(0, 1, count).astype(np.float32)
    plots = 0.5 * rng.standard_normal((count, BANDS, SIDE, SIDE), dtype=np.float32)
    rows = np.sin(np.arange(SIDE) * 1.4)[None, :, None]
    for plot, v in zip(plots, vigor):
        plot[3:] += v * (1 + 0.5 * rows).astype(np.float32)
        plot[:2] -= 0.4 * v
        holes = rng.random((SIDE, SIDE)) < 0.3 * (1 - v)
        plot[:, holes] -= 0.3
    return TensorDataset(torch.from_numpy(plots), torch.from_numpy(vigor))


class VigorNet(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.losses = []
        self.net = nn.Sequential(
            nn.Conv2d(BANDS, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(64, 96, 3, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(96, 1))

    def training_step(self, batch, index):
        plots, vigor = batch
        loss = nn.functional.mse_loss(self.net(plots).squeeze(1), vigor)
        self.losses.append(loss.detach())
        return loss

    def validation_step(self, batch, index):
        plots, vigor = batch
        error = (self.net(plots).squeeze(1) - vigor).abs().mean()
        self.log("error", error)

    def on_train_epoch_end(self):
        train = torch.stack(self.losses).mean().item()
        self.losses.clear()
        print(f"epoch {self.current_epoch} train {train:.4f}")

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def main():
    L.seed_everything(2, verbose=False)
    train = DataLoader(make_plots(3000, 1), batch_size=48, shuffle=True)
    valid = DataLoader(make_plots(500, 2), batch_size=100)
    with tempfile.TemporaryDirectory() as folder:
        keeper = ModelCheckpoint(dirpath=folder, monitor="error", save_top_k=1)
        trainer = L.Trainer(max_epochs=6, accelerator="cpu", devices=1, logger=False,
                            callbacks=[keeper], enable_progress_bar=False,
                            enable_model_summary=False, num_sanity_val_steps=0)
        trainer.fit(VigorNet(), train, valid)
        print(f"best error {keeper.best_model_score.item():.4f}")


if __name__ == "__main__":
    main()
