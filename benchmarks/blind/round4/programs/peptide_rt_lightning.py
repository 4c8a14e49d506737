"""Predict peptide retention times from composition and neighbour counts (PyTorch Lightning)."""
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
FEATURES = 60


def peptides(count, seed):
    g = torch.Generator().manual_seed(seed)
    world = torch.Generator().manual_seed(777)
    first = torch.randn(FEATURES, generator=world)
    pair = torch.randn(FEATURES, FEATURES, generator=world) / FEATURES
    x = torch.randn(count, FEATURES, generator=g)
    minutes = 30 + 2 * (x @ first) / FEATURES**0.5 + 4 * ((x @ pair) * x).sum(1)
    minutes += 0.2 * torch.randn(count, generator=g)
    return x, minutes


class RetentionModel(L.LightningModule):
    def __init__(self, width=256, lr=1e-3):
        super().__init__()
        self.lr = lr
        self.body = nn.Sequential(
            nn.Linear(FEATURES, width), nn.GELU(),
            nn.Linear(width, width), nn.GELU(),
            nn.Linear(width, width), nn.GELU(),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        return 30 + self.body(x).squeeze(-1)

    def training_step(self, batch, _):
        x, y = batch
        return F.smooth_l1_loss(self(x), y)

    def validation_step(self, batch, _):
        x, y = batch
        guess = self(x)
        self.log("val_mae", (guess - y).abs().mean(), on_epoch=True, on_step=False)

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.lr, weight_decay=1e-3)
        sched = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.9)
        return [opt], [sched]


class PeptideData(L.LightningDataModule):
    def __init__(self, batch=128):
        super().__init__()
        self.batch = batch

    def setup(self, stage):
        self.train = TensorDataset(*peptides(16_000, 1))
        self.valid = TensorDataset(*peptides(6_000, 2))
        self.shuffle = torch.Generator().manual_seed(13)

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.batch, shuffle=True, generator=self.shuffle)

    def val_dataloader(self):
        return DataLoader(self.valid, batch_size=self.batch)


def main():
    L.seed_everything(13)
    model = RetentionModel()
    data = PeptideData()
    trainer = L.Trainer(
        accelerator="cpu",
        max_epochs=12,
        val_check_interval=25,
        num_sanity_val_steps=0,
        gradient_clip_val=1.0,
        detect_anomaly=True,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, datamodule=data)
    score = trainer.validate(model, datamodule=data, verbose=False)[0]
    print(f"validation error {score['val_mae']:.2f} min after {trainer.global_step} steps")


if __name__ == "__main__":
    main()
