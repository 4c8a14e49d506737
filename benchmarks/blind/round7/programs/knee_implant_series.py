"""Predict the revision of knee implants from the daily load record of each patient."""
import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

PATIENTS, LONGEST, BATCH = 2400, 1500, 48
SENSORS = ["load", "flexion", "steps", "warmth"]


def load_record():
    """One row for each patient and day, in the order in which the days came in."""
    rng = np.random.default_rng(13)
    length = np.clip(rng.lognormal(5.85, 0.35, PATIENTS).astype(int), 60, LONGEST)
    patient = np.repeat(np.arange(PATIENTS), length)
    day = np.concatenate([np.arange(n) for n in length])
    wear = np.repeat(rng.gamma(2.0, 1.0, PATIENTS), length)
    values = rng.normal(0, 1, (len(patient), 4)) + 0.002 * (wear * day)[:, None]
    frame = pd.DataFrame(values, columns=SENSORS)
    frame.insert(0, "patient", patient)
    frame.insert(1, "day", day)
    revised = (wear[np.searchsorted(patient, np.arange(PATIENTS))] > 2.2).astype(np.float32)
    return frame.sort_values(["day", "patient"], ignore_index=True), revised


class ImplantRecords(Dataset):
    def __init__(self, frame, revised):
        self.frame = frame
        self.revised = revised

    def __len__(self):
        return len(self.revised)

    def __getitem__(self, i):
        part = self.frame[self.frame["patient"] == i].sort_values("day")
        series = part[SENSORS].to_numpy(np.float32)
        return torch.from_numpy(series), float(self.revised[i])


def collate(items):
    width = LONGEST
    padded = torch.zeros(len(items), width, len(SENSORS))
    length = torch.tensor([len(series) for series, _ in items])
    for row, (series, _) in enumerate(items):
        padded[row, :len(series)] = series
    return padded, length, torch.tensor([label for _, label in items])


class RevisionNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(len(SENSORS), 32, batch_first=True)
        self.out = nn.Linear(32, 1)

    def forward(self, padded, length):
        states, _ = self.gru(padded)
        last = states[torch.arange(len(length)), length - 1]
        return self.out(last).squeeze(1)


def main():
    torch.manual_seed(13)
    frame, revised = load_record()
    loader = DataLoader(ImplantRecords(frame, revised), batch_size=BATCH, shuffle=True,
                        collate_fn=collate)
    model = RevisionNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    recent = []
    for batch_no, (padded, length, label) in enumerate(loader, 1):
        loss = nn.functional.binary_cross_entropy_with_logits(model(padded, length), label)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        recent.append(loss.item())
        if batch_no % 25 == 0:
            print(f"batch {batch_no}: loss {np.mean(recent[-25:]):.4f}")


if __name__ == "__main__":
    main()
