"""Predict tremor episodes from wrist accelerometer features with Lightning."""
import logging
import warnings

import lightning as L
import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
WINDOWS, FEATURES, BATCH, EPOCHS = 36000, 90, 120, 6


def wrist_windows():
    rng = np.random.default_rng(21)
    x = rng.normal(0, 1, (WINDOWS, FEATURES)).astype(np.float32)
    weight = rng.normal(0, 1, FEATURES) * (rng.random(FEATURES) < 0.2)
    logit = x @ weight + 0.6 * x[:, 0] * x[:, 1] + rng.normal(0, 1.5, WINDOWS) - 1.5
    return TensorDataset(torch.from_numpy(x), torch.from_numpy((logit > 0).astype(np.float32)))


class TremorRisk(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(FEATURES, 256), nn.SiLU(), nn.LayerNorm(256),
            nn.Linear(256, 256), nn.SiLU(), nn.LayerNorm(256),
            nn.Linear(256, 1))
        self.scores, self.truth = [], []
        self.auc = 0.0

    def training_step(self, batch, batch_idx):
        x, y = batch
        logit = self.net(x).squeeze(1)
        loss = nn.functional.binary_cross_entropy_with_logits(logit, y)
        self.scores.append(logit.detach())
        self.truth.append(y)
        scores = torch.cat(self.scores).sigmoid().numpy()
        truth = torch.cat(self.truth).numpy()
        self.auc = roc_auc_score(truth, scores)
        return loss

    def on_train_epoch_end(self):
        print(f"epoch {self.current_epoch}: training AUC {self.auc:.4f}")
        self.scores.clear()
        self.truth.clear()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def main():
    L.seed_everything(5, verbose=False)
    loader = DataLoader(wrist_windows(), batch_size=BATCH, shuffle=True, num_workers=0)
    trainer = L.Trainer(max_epochs=EPOCHS, accelerator="cpu", devices=1, logger=False,
                        enable_checkpointing=False, enable_progress_bar=False,
                        enable_model_summary=False)
    trainer.fit(TremorRisk(), loader)


if __name__ == "__main__":
    main()
