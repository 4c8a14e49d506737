"""Learn listener and song factors from play counts (matrix factorisation with a head)."""
import os

import lightning as L
import numpy as np
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

WORK = os.path.join(os.environ.get("TMPDIR", "."), "song_factors")
LISTENERS, SONGS, WIDTH = 40_000, 24_000, 64
PLAYS = 300_000
EPOCHS = 3


def play_log():
    rng = np.random.default_rng(23)
    listener = rng.integers(0, LISTENERS, PLAYS)
    song = np.minimum(rng.zipf(1.2, PLAYS) - 1, SONGS - 1)
    taste = rng.normal(0, 1, (LISTENERS, 4))
    style = rng.normal(0, 1, (SONGS, 4))
    liking = (taste[listener] * style[song]).sum(1) + rng.normal(0, 0.5, PLAYS)
    return TensorDataset(torch.from_numpy(listener), torch.from_numpy(song),
                         torch.from_numpy(liking.astype(np.float32)))


class Factors(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.listener = nn.Embedding(LISTENERS, WIDTH)
        self.song = nn.Embedding(SONGS, WIDTH)
        nn.init.normal_(self.listener.weight, std=0.1)
        nn.init.normal_(self.song.weight, std=0.1)
        self.head = nn.Sequential(nn.Linear(3 * WIDTH, 64), nn.ReLU(), nn.Linear(64, 1))
        self.sums = []

    def forward(self, listener, song):
        a, b = self.listener(listener), self.song(song)
        return self.head(torch.cat([a, b, a * b], 1)).squeeze(1) + (a * b).sum(1)

    def training_step(self, batch, index):
        listener, song, liking = batch
        loss = nn.functional.mse_loss(self(listener, song), liking)
        self.sums.append(loss.detach())
        return loss

    def on_train_epoch_end(self):
        print(f"epoch {self.current_epoch}: mean squared error {torch.stack(self.sums).mean():.3f}")
        self.sums.clear()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=2e-3)


def main():
    L.seed_everything(3)
    data = play_log()
    loader = DataLoader(data, batch_size=2048, shuffle=True, num_workers=0,
                        generator=torch.Generator().manual_seed(1))
    keep = ModelCheckpoint(dirpath=WORK, filename="factors", save_top_k=1,
                           every_n_train_steps=5, enable_version_counter=False)
    trainer = L.Trainer(max_epochs=EPOCHS, accelerator="cpu", callbacks=[keep], logger=False,
                        enable_progress_bar=False, enable_model_summary=False,
                        default_root_dir=WORK)
    model = Factors()
    trainer.fit(model, loader)
    with torch.no_grad():
        favourites = (model.listener.weight[:5] @ model.song.weight.T).topk(3, dim=1).indices
    print("favourite songs of the first listeners:", favourites.tolist())
    print("model kept:", os.path.exists(keep.best_model_path))


if __name__ == "__main__":
    main()
