"""Next-hour load of forty substations with Lightning; errors are kept per substation."""
import logging
import warnings

import lightning as L
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
SITES, PAST, HOURS, EPOCHS = 40, 24, 20000, 5


def load_history(rng):
    hour = np.arange(HOURS)[:, None]
    phase = rng.uniform(0, 3, SITES)
    daily = np.sin(2 * np.pi * hour / 24 + phase) + 0.3 * np.sin(2 * np.pi * hour / 168)
    noise = np.zeros((HOURS, SITES))
    shocks = rng.normal(0, 0.1, (HOURS, SITES))
    for row in range(1, HOURS):
        noise[row] = 0.9 * noise[row - 1] + shocks[row]
    return torch.from_numpy((daily + noise).astype(np.float32))


class LoadForecaster(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Flatten(), nn.Linear(SITES * PAST, 384), nn.ReLU(), nn.Linear(384, 384), nn.ReLU(),
            nn.Linear(384, SITES),
        )

    def training_step(self, batch, number):
        past, following = batch
        error = self.net(past) - following
        site_errors = error.detach().abs().mean(0)
        for site in range(SITES):
            self.log(f"mae/site_{site:02d}", site_errors[site], on_step=True, on_epoch=True)
        return error.square().mean()

    def on_train_epoch_end(self):
        if self.current_epoch == EPOCHS - 1:
            print("last epoch done, parameters", sum(p.numel() for p in self.parameters()))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main():
    L.seed_everything(9, verbose=False)
    history = load_history(np.random.default_rng(9))
    windows = history.unfold(0, PAST, 1)[:-1].contiguous()
    data = TensorDataset(windows, history[PAST:])
    loader = DataLoader(data, batch_size=64, shuffle=True)
    model = LoadForecaster()
    trainer = L.Trainer(
        max_epochs=EPOCHS, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    )
    trainer.fit(model, loader)
    final = {k: float(v) for k, v in trainer.callback_metrics.items() if k.endswith("_epoch")}
    worst = max(final, key=final.get)
    print(f"{len(final)} sites, mean error {np.mean(list(final.values())):.4f}, worst {worst}")


if __name__ == "__main__":
    main()
