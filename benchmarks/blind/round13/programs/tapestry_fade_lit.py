"""Predict the original dye of faded tapestry threads from reflectance curves."""
import logging
import warnings

import lightning as L
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CURVE = 384
DYES = 12

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


def make_threads(count, seed):
    gen = torch.Generator().manual_seed(seed)
    dye = torch.randint(0, DYES, (count,), generator=gen)
    base = torch.randn(DYES, CURVE, generator=torch.Generator().manual_seed(99)).cumsum(1) * 0.05
    fade = torch.rand(count, 1, generator=gen)
    curve = base[dye] * (1 - 0.6 * fade) + 0.4 * torch.randn(count, CURVE, generator=gen)
    return TensorDataset(curve, dye)


class DyeNet(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(CURVE, 1024), nn.ReLU(),
            nn.Linear(1024, 1024), nn.ReLU(),
            nn.Linear(1024, DYES),
        )
        self.gradients = {}

    def training_step(self, batch, batch_idx):
        curve, dye = batch
        loss = nn.functional.cross_entropy(self.net(curve), dye)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def on_after_backward(self):
        for name, parameter in self.named_parameters():
            values = parameter.grad.detach().flatten().numpy()
            self.gradients[name] = np.histogram(values, bins=64)

    def on_train_epoch_end(self):
        loss = float(self.trainer.callback_metrics.get("train_loss", float("nan")))
        counts, edges = self.gradients["net.2.weight"]
        middle = np.abs(edges).max()
        print(f"epoch {self.current_epoch}: loss {loss:.4f} largest gradient {middle:.2e}")

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=3e-4)


def main():
    L.seed_everything(1, verbose=False)
    torch.set_num_threads(2)
    loader = DataLoader(make_threads(7680, 2), batch_size=128, shuffle=True)
    trainer = L.Trainer(
        max_epochs=5, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    )
    model = DyeNet()
    trainer.fit(model, loader)
    print("batches seen", trainer.global_step)


if __name__ == "__main__":
    main()
