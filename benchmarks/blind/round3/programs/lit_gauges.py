"""River level forecast from gauge logs (one text file per station)."""
import csv
import logging
import math
import os
import warnings
from datetime import datetime, timedelta
from pathlib import Path

import lightning as L
import numpy as np
import torch
from lightning.pytorch.callbacks import Callback
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

ROOT = Path(os.environ.get("TMPDIR", ".")) / "gauges"
STATIONS, ROWS = 12, 8000
HISTORY, AHEAD, STRIDE = 32, 6, 8


def write_logs():
    ROOT.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(5)
    start = datetime(2019, 1, 1)
    stamps = [(start + timedelta(minutes=15 * i)).strftime("%d/%m/%Y %H:%M") for i in range(ROWS)]
    t = np.arange(ROWS)
    for s in range(STATIONS):
        rain = rng.gamma(0.2, 2.0, ROWS)
        level = np.convolve(rain, np.exp(-np.arange(60) / 15.0), "same") * 0.1
        level += 0.4 * np.sin(2 * np.pi * t / 96 + s) + 0.02 * rng.normal(size=ROWS)
        temp = 12 + 6 * np.sin(2 * np.pi * t / 96 - 1.2) + rng.normal(size=ROWS)
        with open(ROOT / f"station_{s:02d}.csv", "w", newline="") as f:
            out = csv.writer(f)
            out.writerow(["time", "level", "rain", "temp"])
            out.writerows([a, f"{b:.4f}", f"{c:.3f}", f"{d:.2f}"] for a, b, c, d in zip(stamps, level, rain, temp))


def read_station(path):
    rows = []
    with open(path, newline="") as f:
        for rec in csv.DictReader(f):
            when = datetime.strptime(rec["time"], "%d/%m/%Y %H:%M")
            phase = 2 * math.pi * (when.hour * 60 + when.minute) / 1440
            rows.append((float(rec["level"]), float(rec["rain"]), float(rec["temp"]) / 10,
                         math.sin(phase), math.cos(phase)))
    return np.asarray(rows, dtype=np.float32)


def windows(table):
    idx = np.arange(0, len(table) - HISTORY - AHEAD, STRIDE)
    x = np.stack([table[i:i + HISTORY] for i in idx])
    y = table[idx + HISTORY + AHEAD - 1, 0]
    return x, y


class GaugeData(L.LightningDataModule):
    def __init__(self, batch_size=256):
        super().__init__()
        self.batch_size = batch_size

    def _load(self, files):
        parts = [windows(read_station(f)) for f in files]
        x = torch.from_numpy(np.concatenate([p[0] for p in parts]))
        y = torch.from_numpy(np.concatenate([p[1] for p in parts]))
        mixed = torch.from_numpy(np.random.default_rng(7).permutation(len(x)))
        return TensorDataset(x[mixed], y[mixed])

    def train_dataloader(self):
        files = sorted(ROOT.glob("station_*.csv"))[:-1]
        return DataLoader(self._load(files), batch_size=self.batch_size, drop_last=True)


class LevelNet(L.LightningModule):
    def __init__(self, hidden=72):
        super().__init__()
        self.rnn = nn.GRU(5, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)
        self.losses = []

    def training_step(self, batch, _):
        x, y = batch
        out, _ = self.rnn(x)
        loss = nn.functional.smooth_l1_loss(self.head(out[:, -1]).squeeze(-1), y)
        self.losses.append(loss.detach())
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=3e-3)


class EpochReport(Callback):
    def on_train_epoch_end(self, trainer, module):
        print(f"epoch {trainer.current_epoch}: loss {torch.stack(module.losses).mean():.4f}", flush=True)
        module.losses.clear()


if __name__ == "__main__":
    L.seed_everything(1, verbose=False)
    write_logs()
    trainer = L.Trainer(max_epochs=8, accelerator="cpu", logger=False, default_root_dir=ROOT,
                        reload_dataloaders_every_n_epochs=1, callbacks=[EpochReport()],
                        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(LevelNet(), datamodule=GaugeData())
