# Forecast of road sensor speeds 12 steps ahead with a GRU.
import tempfile
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SequentialSampler, TensorDataset

warnings.filterwarnings("ignore", message=".*does not have many workers.*")
SENSORS, HISTORY, AHEAD = 48, 36, 12


def road_speeds(steps=4200):
    g = torch.Generator().manual_seed(42)
    t = torch.arange(steps).float()[:, None]
    phase = torch.rand(SENSORS, generator=g)[None] * 6.28
    rush = 25 * torch.relu(torch.sin(2 * torch.pi * t / 288 + phase))
    drift = torch.cumsum(0.05 * torch.randn(steps, SENSORS, generator=g), 0)
    return (60 - rush + drift + torch.randn(steps, SENSORS, generator=g)) / 30 - 1.5


def windows(series):
    w = series.unfold(0, HISTORY + AHEAD, 1).transpose(1, 2).contiguous()
    return TensorDataset(w[:, :HISTORY], w[:, HISTORY:])


def by_batch(ds, size, train):
    order = RandomSampler(ds, generator=torch.Generator().manual_seed(8)) if train else SequentialSampler(ds)
    return DataLoader(ds, sampler=BatchSampler(order, size, drop_last=train), batch_size=None, num_workers=0)


class SpeedNet(L.LightningModule):
    def __init__(self, hidden=160):
        super().__init__()
        self.rnn = nn.GRU(SENSORS, hidden, num_layers=2, batch_first=True)
        self.out = nn.Linear(hidden, AHEAD * SENSORS)

    def forward(self, past):
        h, _ = self.rnn(past)
        return self.out(h[:, -1]).view(-1, AHEAD, SENSORS)

    def training_step(self, batch, i):
        past, future = batch
        loss = nn.functional.l1_loss(self(past), future)
        if i % 20 == 0:
            self.log("mae", loss)
        return loss

    def validation_step(self, batch, i):
        past, future = batch
        self.log("val_mae", nn.functional.l1_loss(self(past), future), batch_size=len(past))

    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), lr=2e-3)
        return [opt], [torch.optim.lr_scheduler.StepLR(opt, 4, 0.5)]


def main():
    L.seed_everything(13, verbose=False)
    s = road_speeds()
    train, val = windows(s[:3800]), windows(s[3800:])
    with tempfile.TemporaryDirectory() as d:
        net = SpeedNet()
        tr = L.Trainer(max_epochs=6, accelerator="cpu", default_root_dir=d, enable_progress_bar=False,
                       enable_model_summary=False, logger=False, gradient_clip_val=1.0)
        tr.fit(net, by_batch(train, 64, True), by_batch(val, 256, False))
        print(f"{len(train)} windows, validation MAE {30 * tr.callback_metrics['val_mae'].item():.3f} km/h")


if __name__ == "__main__":
    main()
