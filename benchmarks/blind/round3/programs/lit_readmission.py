"""Readmission risk from discharge records: a small residual MLP in Lightning."""
import logging
import os
import warnings
from pathlib import Path

import lightning as L
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import BinaryAUROC

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

SCRATCH = Path(os.environ.get("TMPDIR", ".")) / "readmission"
N_PATIENTS, N_FEATURES = 72_000, 48
EPOCHS, BATCH = 4, 256


def make_cohort(seed=11):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N_PATIENTS, N_FEATURES)).astype(np.float32)
    x[:, :6] = np.floor(np.abs(x[:, :6]) * 3)          # counts: visits, drugs, ...
    w1 = rng.normal(size=(N_FEATURES, 8)) / 7
    risk = np.tanh(x @ w1).sum(1) + 0.4 * x[:, 7] * x[:, 9]
    y = (rng.random(N_PATIENTS) < 1 / (1 + np.exp(-risk))).astype(np.float32)
    cut = int(0.9 * N_PATIENTS)
    tx, ty = torch.from_numpy(x), torch.from_numpy(y)
    return TensorDataset(tx[:cut], ty[:cut]), TensorDataset(tx[cut:], ty[cut:])


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.fc1 = nn.Linear(width, width)
        self.fc2 = nn.Linear(width, width)

    def forward(self, h):
        return h + self.fc2(F.gelu(self.fc1(self.norm(h))))


class RiskModel(L.LightningModule):
    def __init__(self, width=160, depth=3, lr=1e-3):
        super().__init__()
        self.lr = lr
        self.inp = nn.Linear(N_FEATURES, width)
        self.blocks = nn.Sequential(*[Block(width) for _ in range(depth)])
        self.out = nn.Linear(width, 1)
        self.train_auc = BinaryAUROC()
        self.val_auc = BinaryAUROC()

    def forward(self, x):
        return self.out(self.blocks(self.inp(x))).squeeze(-1)

    def training_step(self, batch, batch_idx):
        x, y = batch
        logit = self(x)
        loss = F.binary_cross_entropy_with_logits(logit, y)
        self.train_auc.update(logit.detach().sigmoid(), y.int())
        self.log("train_auc", self.train_auc.compute())
        self.log("train_loss", loss)
        return loss

    def on_train_epoch_end(self):
        self.log("train_auc_epoch", self.train_auc.compute())
        self.train_auc.reset()

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.val_auc.update(self(x).sigmoid(), y.int())

    def on_validation_epoch_end(self):
        self.log("val_auc", self.val_auc.compute())
        self.val_auc.reset()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.lr, weight_decay=0.01)


def main():
    L.seed_everything(3, verbose=False)
    train, val = make_cohort()
    model = RiskModel()
    trainer = L.Trainer(max_epochs=EPOCHS, accelerator="cpu", default_root_dir=SCRATCH, logger=False,
                        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
                        num_sanity_val_steps=0)
    trainer.fit(model, DataLoader(train, batch_size=BATCH, shuffle=True),
                DataLoader(val, batch_size=2048))
    m = trainer.callback_metrics
    print(f"train AUC {m['train_auc_epoch']:.3f}  validation AUC {m['val_auc']:.3f}")


if __name__ == "__main__":
    main()
