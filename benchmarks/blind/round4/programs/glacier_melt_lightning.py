"""Emulate daily glacier melt profiles from weather windows (PyTorch Lightning)."""
import warnings
from pathlib import Path

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
WEATHER, LAYERS = 480, 64


def seasons(count, seed):
    g = torch.Generator().manual_seed(seed)
    world = torch.Generator().manual_seed(55)
    mixing = torch.randn(WEATHER, LAYERS, generator=world) / WEATHER**0.5
    x = torch.randn(count, WEATHER, generator=g)
    melt = F.relu(x @ mixing).cumsum(1) / LAYERS**0.5 + 0.05 * torch.randn(count, LAYERS, generator=g)
    return TensorDataset(x, melt)


class MeltEmulator(L.LightningModule):
    def __init__(self, width=1024):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(WEATHER, width), nn.SiLU(),
            nn.Linear(width, width), nn.SiLU(), nn.Dropout(0.1),
            nn.Linear(width, width), nn.SiLU(), nn.Dropout(0.1),
            nn.Linear(width, LAYERS),
        )

    def training_step(self, batch, _):
        x, melt = batch
        loss = F.mse_loss(self.net(x), melt)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, _):
        x, melt = batch
        self.log("val_rmse", F.mse_loss(self.net(x), melt).sqrt())

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=1e-3)
        return {"optimizer": opt, "lr_scheduler": torch.optim.lr_scheduler.CosineAnnealingLR(opt, 5)}


def main():
    L.seed_everything(56)
    train = DataLoader(seasons(10_240, 1), batch_size=256, shuffle=True, num_workers=0)
    valid = DataLoader(seasons(1_024, 2), batch_size=512, num_workers=0)
    model = MeltEmulator()
    keep = ModelCheckpoint(dirpath="melt_checkpoints", monitor="val_rmse", save_top_k=1)
    trainer = L.Trainer(
        accelerator="cpu",
        max_epochs=5,
        logger=CSVLogger("melt_logs"),
        log_every_n_steps=5,
        callbacks=[keep, LearningRateMonitor("epoch")],
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, train, valid)
    print(f"best validation rmse {keep.best_model_score.item():.3f}, kept {Path(keep.best_model_path).suffix} file")


if __name__ == "__main__":
    main()
