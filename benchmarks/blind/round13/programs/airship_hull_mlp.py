"""Predict the gas loss of airship hull panels from inspection records."""
import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

RECORDS = 18000
EPOCHS = 4


def make_records(seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(RECORDS, 24)).astype(np.float32)
    frame = pd.DataFrame(values, columns=[f"gauge_{i:02d}" for i in range(24)])
    frame["panel"] = [f"P{int(k):03d}" for k in rng.integers(0, 400, RECORDS)]
    frame["seam"] = rng.choice(["glued", "sewn", "welded"], RECORDS)
    loss = values[:, :6].sum(1) + np.tanh(values[:, 6] * values[:, 7]) * 2
    frame["loss"] = loss + 0.8 * (frame["seam"] == "sewn") + rng.normal(0, 0.3, RECORDS)
    return frame


class HullRecords(Dataset):
    def __init__(self, frame):
        self.frame = frame
        self.gauges = [name for name in frame.columns if name.startswith("gauge_")]
        self.seams = {"glued": 0, "sewn": 1, "welded": 2}

    def __len__(self):
        return len(self.frame)

    def __getitem__(self, index):
        row = self.frame.iloc[index]
        x = row[self.gauges].to_numpy(dtype=np.float32)
        return torch.from_numpy(x), self.seams[row["seam"]], np.float32(row["loss"])


class HullNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.seam = nn.Embedding(3, 8)
        self.net = nn.Sequential(
            nn.Linear(32, 512), nn.SiLU(), nn.Linear(512, 512), nn.SiLU(), nn.Linear(512, 1),
        )

    def forward(self, x, seam):
        return self.net(torch.cat([x, self.seam(seam)], dim=1)).squeeze(1)


def main():
    torch.manual_seed(2)
    torch.set_num_threads(2)
    frame = make_records(21)
    loader = DataLoader(HullRecords(frame), batch_size=128, shuffle=True)
    net = HullNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        total = 0.0
        for x, seam, target in loader:
            loss = nn.functional.mse_loss(net(x, seam), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(x)
        print(f"epoch {epoch}: mean squared error {total / len(frame):.4f}")


if __name__ == "__main__":
    main()
