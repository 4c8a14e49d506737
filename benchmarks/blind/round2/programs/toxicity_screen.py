# Multi task toxicity screen on hashed fingerprints, trained with Lightning.
import os
import tempfile
import warnings

import lightning as L
import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import MultilabelAUROC

warnings.filterwarnings("ignore")
BITS, ASSAYS = 512, 12


def make_library(path, n):
    rng = np.random.default_rng(2024)
    fp = (rng.random((n, BITS)) < 0.08).astype(np.uint8)
    w = rng.normal(0, 1, (BITS, ASSAYS))
    score = fp @ w + rng.normal(0, 2, (n, ASSAYS))
    np.savez(path, fp=fp, tox=(score > 1.0).astype(np.int8))


class ToxNet(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.trunk = torch.nn.Sequential(
            torch.nn.Linear(BITS, 768), torch.nn.ReLU(),
            torch.nn.Linear(768, 768), torch.nn.ReLU(),
            torch.nn.Linear(768, ASSAYS))
        self.auroc = MultilabelAUROC(num_labels=ASSAYS, average="macro")
        self.per_epoch = []

    def training_step(self, batch, idx):
        fp, tox = batch
        return F.binary_cross_entropy_with_logits(self.trunk(fp.float()), tox.float())

    def validation_step(self, batch, idx):
        fp, tox = batch
        prob = torch.sigmoid(self.trunk(fp.float()))
        self.auroc.update(prob, tox.long())
        self.log("auroc_so_far", self.auroc.compute())

    def on_validation_epoch_end(self):
        self.per_epoch.append(self.auroc.compute().item())
        self.auroc.reset()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05, momentum=0.9)


def batches(fp, tox, size, shuffle, g=None):
    data = TensorDataset(torch.from_numpy(fp), torch.from_numpy(tox))
    order = (torch.utils.data.RandomSampler(data, generator=g) if shuffle
             else torch.utils.data.SequentialSampler(data))
    picks = torch.utils.data.BatchSampler(order, size, drop_last=False)
    return DataLoader(data, sampler=picks, batch_size=None)


if __name__ == "__main__":
    L.seed_everything(3, verbose=False)
    with tempfile.TemporaryDirectory() as work:
        lib = os.path.join(work, "library.npz")
        make_library(lib, 30000)
        z = np.load(lib)
        fp, tox = z["fp"], z["tox"]
        cut = 23000
        g = torch.Generator().manual_seed(5)
        train = batches(fp[:cut], tox[:cut], 128, True, g)
        val = batches(fp[cut:], tox[cut:], 160, False)
        model = ToxNet()
        tr = L.Trainer(max_epochs=4, accelerator="cpu", logger=False, enable_checkpointing=False,
                       enable_progress_bar=False, enable_model_summary=False,
                       num_sanity_val_steps=0, default_root_dir=work)
        tr.fit(model, train, val)
        print("macro AUROC by epoch:", " ".join(f"{a:.3f}" for a in model.per_epoch))
