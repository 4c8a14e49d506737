"""Forecast silt plumes of dredging works from buoy tables (Lightning)."""
import logging
import tempfile
import warnings
from pathlib import Path

import lightning as L
import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import (BatchSampler, DataLoader, RandomSampler,
                              SequentialSampler, TensorDataset)

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
STATIONS = 24
ROWS = 11000
COLUMNS = ["turbidity", "current", "wind", "tide", "depth", "salinity"]


def write_tables(folder):
    rng = np.random.default_rng(4)
    for station in range(STATIONS):
        values = np.cumsum(0.1 * rng.standard_normal((ROWS, len(COLUMNS))), axis=0)
        values = np.sin(values) + 0.1 * rng.standard_normal(values.shape)
        frame = pd.DataFrame(values.round(6), columns=COLUMNS)
        frame.to_csv(folder / f"station_{station:02d}.csv", index=False)


def read_station(path):
    frame = pd.read_csv(path)
    parts = [frame]
    for window in (6, 24, 96):
        rolled = frame.rolling(window, min_periods=1)
        parts.append(rolled.mean().add_suffix(f"_mean{window}"))
        parts.append(rolled.quantile(0.9).add_suffix(f"_q{window}"))
    table = pd.concat(parts, axis=1).to_numpy(np.float32)
    return table[96:-12], frame["turbidity"].to_numpy(np.float32)[108:]


def in_batches(dataset, order):
    batches = BatchSampler(order(dataset), 2048, drop_last=False)
    return DataLoader(dataset, sampler=batches, batch_size=None)


class PlumeData(L.LightningDataModule):
    def __init__(self, folder):
        super().__init__()
        self.paths = sorted(folder.glob("station_*.csv"))

    def load(self, paths):
        x, y = zip(*(read_station(path) for path in paths))
        return TensorDataset(torch.from_numpy(np.concatenate(x)),
                             torch.from_numpy(np.concatenate(y)))

    def train_dataloader(self):
        return in_batches(self.load(self.paths[4:]), RandomSampler)

    def val_dataloader(self):
        return in_batches(self.load(self.paths[:4]), SequentialSampler)


class PlumeNet(L.LightningModule):
    def __init__(self, inputs):
        super().__init__()
        self.errors = []
        self.net = nn.Sequential(nn.Linear(inputs, 256), nn.GELU(), nn.Linear(256, 256),
                                 nn.GELU(), nn.Linear(256, 1))

    def training_step(self, batch, index):
        x, y = batch
        return nn.functional.smooth_l1_loss(self.net(x).squeeze(1), y)

    def validation_step(self, batch, index):
        x, y = batch
        loss = nn.functional.smooth_l1_loss(self.net(x).squeeze(1), y)
        self.errors.append(loss)

    def on_validation_epoch_end(self):
        value = torch.stack(self.errors).mean().item()
        self.errors.clear()
        print(f"epoch {self.current_epoch} validation {value:.4f}")

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def main():
    L.seed_everything(1, verbose=False)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(folder)
        data = PlumeData(folder)
        trainer = L.Trainer(max_epochs=4, accelerator="cpu", devices=1, logger=False,
                            enable_checkpointing=False, enable_progress_bar=False,
                            enable_model_summary=False, num_sanity_val_steps=0,
                            reload_dataloaders_every_n_epochs=1)
        trainer.fit(PlumeNet(7 * len(COLUMNS)), datamodule=data)


if __name__ == "__main__":
    main()
