"""Autoencoder for Raman spectra kept in an LMDB store."""
import pickle
import shutil
import tempfile

import lightning as L
import lmdb
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CHANNELS = 400
SPECTRA = 12000


def fill_store(path):
    rng = np.random.default_rng(77)
    axis = np.arange(CHANNELS)
    env = lmdb.open(path, map_size=1 << 30)
    with env.begin(write=True) as txn:
        for i in range(SPECTRA):
            centre = rng.uniform(40, 360, 3)
            height = rng.uniform(0.3, 1.0, 3)
            curve = (height[:, None] * np.exp(-((axis - centre[:, None]) / 9.0) ** 2)).sum(0)
            curve += rng.normal(0, 0.02, CHANNELS)
            txn.put(f"{i:08d}".encode(), pickle.dumps(curve.astype(np.float32)))
    env.close()


class Spectra(Dataset):
    def __init__(self, path):
        self.path = path

    def __len__(self):
        return SPECTRA

    def __getitem__(self, i):
        env = lmdb.open(self.path, readonly=True, lock=False)
        with env.begin() as txn:
            blob = txn.get(f"{i:08d}".encode())
        env.close()
        return torch.from_numpy(pickle.loads(blob).copy())


class Denoiser(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(CHANNELS, 512), nn.SiLU(), nn.Linear(512, 256), nn.SiLU(),
                                 nn.Linear(256, 16))
        self.dec = nn.Sequential(nn.Linear(16, 256), nn.SiLU(), nn.Linear(256, 512), nn.SiLU(),
                                 nn.Linear(512, CHANNELS))
        self.noise = torch.Generator().manual_seed(9)
        self.epoch_loss = []
        self._acc = []

    def training_step(self, clean, _):
        noisy = clean + 0.05 * torch.randn(clean.shape, generator=self.noise)
        loss = nn.functional.mse_loss(self.dec(self.enc(noisy)), clean)
        self._acc.append(loss.detach())
        return loss

    def on_train_epoch_end(self):
        self.epoch_loss.append(torch.stack(self._acc).mean().item())
        self._acc.clear()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def main():
    L.seed_everything(1, verbose=False)
    where = tempfile.mkdtemp(prefix="raman_")
    fill_store(where)
    loader = DataLoader(Spectra(where), batch_size=96, shuffle=True,
                        generator=torch.Generator().manual_seed(4))
    ae = Denoiser()
    L.Trainer(max_epochs=6, accelerator="cpu", logger=False, enable_checkpointing=False,
              enable_progress_bar=False, enable_model_summary=False).fit(ae, loader)
    print("reconstruction loss first/last epoch: %.5f %.5f" % (ae.epoch_loss[0], ae.epoch_loss[-1]))
    shutil.rmtree(where)


if __name__ == "__main__":
    main()
