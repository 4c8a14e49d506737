"""Sepsis risk of intensive-care patients with a Lightning module."""
import logging
import tempfile
import warnings

import lightning as L
import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

N_HOURS = 102_400
N_SIGNS = 48
BATCH = 512
EPOCHS = 2


def make_hours(rng, n):
    signs = rng.normal(size=(n, N_SIGNS)).astype(np.float32)
    lactate, pulse, pressure = signs[:, 0], signs[:, 1], signs[:, 2]
    score = 0.9 * lactate + 0.6 * pulse * (pressure < 0) - 0.5 * pressure + 0.4 * signs[:, 3] ** 2
    risk = 1.0 / (1.0 + np.exp(2.2 - score))
    label = (rng.random(n) < risk).astype(np.float32)
    return TensorDataset(torch.from_numpy(signs), torch.from_numpy(label))


class RiskModule(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(N_SIGNS, 384), nn.SiLU(),
            nn.Linear(384, 384), nn.SiLU(),
            nn.Linear(384, 384), nn.SiLU(),
            nn.Linear(384, 1),
        )
        self.seen_scores, self.seen_labels = [], []

    def forward(self, signs):
        return self.net(signs).squeeze(1)

    def on_train_epoch_start(self):
        self.seen_scores, self.seen_labels = [], []

    def training_step(self, batch, batch_idx):
        signs, label = batch
        logit = self(signs)
        loss = nn.functional.binary_cross_entropy_with_logits(logit, label)
        self.seen_scores.append(logit.detach().numpy())
        self.seen_labels.append(label.numpy())
        auc = roc_auc_score(np.concatenate(self.seen_labels), np.concatenate(self.seen_scores))
        self.log("train_auc", float(auc))
        self.train_auc = auc
        return loss

    def on_train_epoch_end(self):
        print(f"epoch {self.current_epoch}  training AUC {self.train_auc:.4f}", flush=True)

    def validation_step(self, batch, batch_idx):
        signs, label = batch
        loss = nn.functional.binary_cross_entropy_with_logits(self(signs), label)
        self.log("val_loss", loss)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=3e-4)


def make_loader(data, shuffle):
    order = RandomSampler(data) if shuffle else range(len(data))
    return DataLoader(data, sampler=BatchSampler(order, BATCH, drop_last=True), batch_size=None)


def main():
    L.seed_everything(1)
    rng = np.random.default_rng(1)
    train, held = make_hours(rng, N_HOURS), make_hours(rng, 10_240)
    with tempfile.TemporaryDirectory() as tmp:
        trainer = L.Trainer(
            max_epochs=EPOCHS,
            accelerator="cpu",
            devices=1,
            precision="64-true",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=tmp,
        )
        trainer.fit(RiskModule(), make_loader(train, True), make_loader(held, False))
        print(f"validation loss {float(trainer.callback_metrics['val_loss']):.4f}")


if __name__ == "__main__":
    main()
