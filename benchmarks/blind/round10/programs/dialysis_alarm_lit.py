"""Predicts pressure alarms during dialysis from the last minutes of the session (Lightning)."""
import logging
import warnings

import lightning as L
import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SESSIONS, SIGNALS = 24000, 30
EPOCHS, BATCH = 6, 32


def sessions(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(SESSIONS, SIGNALS)).astype(np.float32)
    risk = 1.2 * x[:, 0] - 0.8 * x[:, 1] * x[:, 2] + 0.6 * np.abs(x[:, 3]) - 1.3
    y = (rng.random(SESSIONS) < 1 / (1 + np.exp(-risk))).astype(np.float32)
    return torch.from_numpy(x), torch.from_numpy(y)


class AlarmNet(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(SIGNALS, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))
        self.curve = []

    def on_train_epoch_start(self):
        self.probs, self.truth = [], []

    def training_step(self, batch, batch_idx):
        x, y = batch
        logit = self.net(x).squeeze(-1)
        loss = nn.functional.binary_cross_entropy_with_logits(logit, y)
        self.probs.append(torch.sigmoid(logit.detach()))
        self.truth.append(y)
        self.auc = roc_auc_score(torch.cat(self.truth).numpy(), torch.cat(self.probs).numpy())
        return loss

    def on_train_epoch_end(self):
        self.curve.append(float(self.auc))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main():
    warnings.filterwarnings("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    L.seed_everything(13)
    x, y = sessions(13)
    loader = DataLoader(TensorDataset(x, y), batch_size=BATCH, shuffle=True)
    model = AlarmNet()
    trainer = L.Trainer(
        accelerator="cpu", max_epochs=EPOCHS, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(model, loader)
    print(f"sessions {SESSIONS}, alarms {y.mean().item():.3f}")
    for epoch, auc in enumerate(model.curve):
        print(f"epoch {epoch}  training AUC {auc:.4f}")


if __name__ == "__main__":
    main()
