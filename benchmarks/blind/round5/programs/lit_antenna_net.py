"""A convolutional autoencoder for radio antenna spectrograms (Lightning), to flag odd ones."""
import os

import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

WORK = os.path.join(os.environ.get("TMPDIR", "."), "lit_antenna_net")
SWEEPS, LINES, TIMES = 1600, 64, 64
EPOCHS = 6


def sweeps(count, seed, odd):
    draw = torch.Generator().manual_seed(seed)
    line = torch.arange(LINES)[None, :, None] / LINES
    time = torch.arange(TIMES)[None, None, :] / TIMES
    level = torch.rand(count, 1, 1, generator=draw)
    carrier = torch.exp(-((line - 0.3 - 0.3 * level) / 0.03) ** 2)
    hum = 0.4 * torch.sin(6.28 * (4 * time + level)) * (line < 0.15)
    image = carrier + hum + 0.1 * torch.randn(count, LINES, TIMES, generator=draw)
    if odd:
        image += torch.exp(-((line - time) / 0.04) ** 2)
    return TensorDataset(image[:, None])


class AntennaNet(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 32, 4, 2, 1), nn.GELU(), nn.Conv2d(32, 64, 4, 2, 1), nn.GELU(),
            nn.Conv2d(64, 96, 4, 2, 1), nn.GELU(), nn.Flatten(), nn.Linear(96 * 64, 24))
        self.widen = nn.Linear(24, 96 * 64)
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(96, 64, 4, 2, 1), nn.GELU(),
            nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.GELU(),
            nn.ConvTranspose2d(32, 1, 4, 2, 1))

    def forward(self, x):
        return self.decoder(self.widen(self.encoder(x)).view(-1, 96, 8, 8))

    def training_step(self, batch, index):
        loss = nn.functional.mse_loss(self(batch[0]), batch[0])
        self.log("loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, index):
        self.log("odd_free", nn.functional.mse_loss(self(batch[0]), batch[0]))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main():
    L.seed_everything(7)
    train = DataLoader(sweeps(SWEEPS, 1, False), batch_size=32, shuffle=True)
    valid = DataLoader(sweeps(160, 2, False), batch_size=80)
    keep = ModelCheckpoint(dirpath=WORK, monitor="odd_free", save_top_k=1,
                           enable_version_counter=False)
    trainer = L.Trainer(max_epochs=EPOCHS, accelerator="cpu", callbacks=[keep], logger=False,
                        enable_progress_bar=False, enable_model_summary=False,
                        default_root_dir=WORK)
    model = AntennaNet()
    trainer.fit(model, train, valid)
    print(f"training loss {trainer.callback_metrics['loss']:.4f}, best {keep.best_model_score:.4f}")
    model.eval()
    with torch.no_grad():
        for name, odd in (("usual", False), ("odd", True)):
            image = sweeps(60, 5, odd).tensors[0]
            error = ((model(image) - image) ** 2).mean((1, 2, 3))
            print(f"{name} sweeps: error {error.mean():.4f}, largest {error.max():.4f}")


if __name__ == "__main__":
    main()
