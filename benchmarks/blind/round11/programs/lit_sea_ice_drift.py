"""Sea-ice drift from pairs of passive-microwave grids, with Lightning."""
import logging
import sys
import time
import warnings

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
torch.set_float32_matmul_precision("high")
ON_GPU = torch.cuda.is_available()
WIDTH = 2048 if ON_GPU else 256
BATCH = 32768 if ON_GPU else 64


class DriftNet(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(2 * 16 * 16, WIDTH)
        self.body = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(10))
        self.norm = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(10))
        self.out = nn.Linear(WIDTH, 2)

    def forward(self, pair):
        h = F.gelu(self.inp(pair))
        for norm, layer in zip(self.norm, self.body):
            h = h + F.gelu(layer(norm(h)))
        return self.out(h)

    def training_step(self, batch, index):
        pair, drift = batch
        return F.smooth_l1_loss(self(pair), drift)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=2e-4, fused=ON_GPU)


class AveragedWeights(L.Callback):
    """Exponential average of the weights, which the forecast runs use later."""

    def __init__(self, decay=0.999):
        self.decay = decay
        self.shadow = {}

    def on_train_start(self, trainer, module):
        self.shadow = {k: v.detach().cpu().clone() for k, v in module.state_dict().items()}

    def on_train_batch_end(self, trainer, module, outputs, batch, index):
        for name, value in module.state_dict().items():
            fresh = value.detach().cpu()
            self.shadow[name] = self.decay * self.shadow[name] + (1 - self.decay) * fresh


class StopAfter(L.Callback):
    def __init__(self, seconds):
        self.seconds = seconds

    def on_train_start(self, trainer, module):
        self.begin = time.perf_counter()
        self.steps = 0

    def on_train_batch_end(self, trainer, module, outputs, batch, index):
        self.steps += 1
        self.loss = outputs["loss"].detach()
        if time.perf_counter() - self.begin > self.seconds:
            trainer.should_stop = True


class GridPairs(torch.utils.data.IterableDataset):
    def __init__(self, count=4):
        gen = torch.Generator().manual_seed(2)
        self.pairs = torch.randn(count, BATCH, 2 * 16 * 16, generator=gen)
        self.drift = self.pairs[:, :, :2] * 0.5 + self.pairs[:, :, 256:258] * 0.2
        if ON_GPU:
            self.pairs, self.drift = self.pairs.cuda(), self.drift.cuda()

    def __iter__(self):
        while True:
            yield from zip(self.pairs, self.drift)


def main():
    L.seed_everything(2, verbose=False)
    budget_s = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    loader = torch.utils.data.DataLoader(GridPairs(), batch_size=None)
    clock = StopAfter(budget_s)
    trainer = L.Trainer(
        accelerator="gpu" if ON_GPU else "cpu", devices=1, precision="bf16-mixed",
        max_epochs=1, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
        callbacks=[AveragedWeights(), clock],
    )
    trainer.fit(DriftNet(), loader)
    print(f"done: {clock.steps} steps, loss {clock.loss.item():.4f}")


if __name__ == "__main__":
    main()
