"""Full-graph GCN on a synthetic citation graph: every epoch is exactly one optimiser step."""
import logging
import os
import warnings

import lightning as L
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

NODES, EDGES, FEATURES, CLASSES = 20_000, 240_000, 256, 12


def build_graph(seed=4):
    rng = np.random.default_rng(seed)
    label = rng.integers(0, CLASSES, NODES)
    order = np.argsort(label, kind="stable")
    src = rng.integers(0, NODES, EDGES)
    dst = np.where(rng.random(EDGES) < 0.6,
                   order[np.clip(np.searchsorted(label[order], label[src]) + rng.integers(0, NODES // CLASSES, EDGES),
                                 0, NODES - 1)],
                   rng.integers(0, NODES, EDGES))
    loop = np.arange(NODES)
    row, col = np.concatenate([src, dst, loop]), np.concatenate([dst, src, loop])
    deg = np.bincount(row, minlength=NODES).astype(np.float32)
    val = 1.0 / np.sqrt(deg[row] * deg[col])
    adj = torch.sparse_coo_tensor(np.stack([row, col]), torch.from_numpy(val), (NODES, NODES))
    adj = adj.coalesce().to_sparse_csr()
    centre = rng.normal(size=(CLASSES, FEATURES)).astype(np.float32)
    x = torch.from_numpy(0.25 * centre[label] + rng.normal(size=(NODES, FEATURES)).astype(np.float32))
    mask = torch.from_numpy(rng.random(NODES) < 0.3)
    return adj, x, torch.from_numpy(label), mask


class GCN(L.LightningModule):
    def __init__(self, adj, x, y, mask, hidden=192):
        super().__init__()
        self.adj, self.x, self.y, self.mask = adj, x, y, mask
        self.l1 = nn.Linear(FEATURES, hidden)
        self.l2 = nn.Linear(hidden, hidden)
        self.l3 = nn.Linear(hidden, CLASSES)

    def forward(self):
        h = F.relu(self.adj @ self.l1(F.dropout(self.x, 0.3, self.training)))
        h = F.relu(self.adj @ self.l2(F.dropout(h, 0.3, self.training)))
        return self.adj @ self.l3(h)

    def training_step(self, batch, batch_idx):
        out = self()
        return F.cross_entropy(out[self.mask], self.y[self.mask])

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=5e-3, weight_decay=5e-4)


if __name__ == "__main__":
    L.seed_everything(17, verbose=False)
    model = GCN(*build_graph())
    trainer = L.Trainer(max_epochs=40, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False,
                        default_root_dir=os.environ.get("TMPDIR", "."))
    trainer.fit(model, DataLoader([0], batch_size=1))
    model.eval()
    with torch.no_grad():
        hit = (model().argmax(1) == model.y)[~model.mask].float().mean()
    print(f"accuracy on unlabelled papers {hit:.3f}")
