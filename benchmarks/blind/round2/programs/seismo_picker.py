"""Phase picking on three component seismograms (P arrival / no arrival)."""
import shutil
import tempfile
import warnings
from pathlib import Path

import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
WINDOW = 256
N_EVENTS = 2600


def synth_windows(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = 0.3 * torch.randn(n, 3, WINDOW, generator=g)
    y = (torch.rand(n, generator=g) < 0.5).float()
    onset = torch.randint(60, 180, (n,), generator=g)
    t = torch.arange(WINDOW)
    for c in range(3):
        burst = torch.sin(0.4 * (c + 1) * t)[None] * torch.exp(-(t[None] - onset[:, None]).clamp(min=0) / 25.0)
        burst = burst * (t[None] >= onset[:, None])
        x[:, c] += y[:, None] * burst
    return x, y


class Picker(L.LightningModule):
    def __init__(self, width=12, depth=14):
        super().__init__()
        self.stem = nn.Conv1d(3, width, 7, stride=4, padding=3)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv1d(width, width, 3, padding=1), nn.GroupNorm(4, width), nn.GELU())
            for _ in range(depth))
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(width * WINDOW // 4, 512), nn.GELU(), nn.Linear(512, 1))
        self.seen = []

    def forward(self, x):
        h = self.stem(x)
        for b in self.blocks:
            h = h + b(h)
        return self.head(h).squeeze(1)

    def training_step(self, batch, _):
        x, y = batch
        loss = nn.functional.binary_cross_entropy_with_logits(self(x), y)
        self.seen.append(loss.item())
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        acc = ((self(x) > 0) == (y > 0.5)).float().mean()
        self.log("val_acc", acc)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=8e-4)


def main():
    L.seed_everything(11, verbose=False)
    run_dir = Path(tempfile.mkdtemp(prefix="picker_"))
    train = TensorDataset(*synth_windows(N_EVENTS, 1))
    val = TensorDataset(*synth_windows(800, 2))
    dl_train = DataLoader(train, batch_size=32, shuffle=True)
    dl_val = DataLoader(val, batch_size=200)
    net = Picker()
    keep = ModelCheckpoint(dirpath=run_dir, every_n_train_steps=4, save_top_k=-1,
                           filename="picker-{step:06d}")
    trainer = L.Trainer(
        max_epochs=2,
        accelerator="cpu",
        detect_anomaly=True,
        callbacks=[keep],
        default_root_dir=run_dir,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(net, dl_train, dl_val)
    print(f"last losses {sum(net.seen[-50:]) / 50:.3f}")
    print(f"validation accuracy {trainer.callback_metrics['val_acc'].item():.3f}")
    shutil.rmtree(run_dir)


if __name__ == "__main__":
    main()
