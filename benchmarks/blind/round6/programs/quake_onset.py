"""Pick the P and S onsets of local earthquakes from three-component records."""
import tempfile
from pathlib import Path

import numpy as np
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

N_RECORDS = 3200
N_SAMPLES = 1000
BATCH = 64
EPOCHS = 4


def make_records(rng):
    t = np.arange(N_SAMPLES, dtype=np.float32)
    p = rng.uniform(150, 500, N_RECORDS).astype(np.float32)
    s = p + rng.uniform(80, 300, N_RECORDS).astype(np.float32)
    records = rng.normal(0, 0.2, (N_RECORDS, 3, N_SAMPLES)).astype(np.float32)
    for onset, period, decay, parts in ((p, 9.0, 60.0, (1.0, 0.3, 0.3)), (s, 21.0, 120.0, (0.5, 1.3, 1.1))):
        late = t[None] - onset[:, None]
        wave = np.sin(2 * np.pi * late / period) * np.exp(-late.clip(0) / decay) * (late > 0)
        records += np.array(parts, np.float32)[None, :, None] * wave[:, None]
    onsets = np.stack([p, s], axis=1) / N_SAMPLES
    return torch.from_numpy(records), torch.from_numpy(onsets)


class Picker(nn.Module):
    def __init__(self):
        super().__init__()
        self.front = nn.Sequential(
            nn.Conv1d(3, 32, 9, stride=4, padding=4), nn.ReLU(),
            nn.Conv1d(32, 64, 5, stride=2, padding=2), nn.ReLU(),
        )
        self.back = nn.Sequential(
            nn.Flatten(), nn.Linear(64 * 125, 1000), nn.ReLU(),
            nn.Linear(1000, 256), nn.ReLU(), nn.Linear(256, 2),
        )

    def forward(self, records):
        return self.back(self.front(records))


def main():
    torch.manual_seed(3)
    records, onsets = make_records(np.random.default_rng(3))
    loader = DataLoader(TensorDataset(records, onsets), batch_size=BATCH, shuffle=True)
    accelerator = Accelerator(cpu=True)
    model = Picker()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

    with tempfile.TemporaryDirectory() as tmp:
        state = Path(tmp) / "state"
        step = 0
        for epoch in range(EPOCHS):
            errors = []
            for x, y in loader:
                loss = nn.functional.smooth_l1_loss(model(x), y, beta=0.05)
                optimizer.zero_grad()
                accelerator.backward(loss)
                optimizer.step()
                errors.append(loss.item())
                step += 1
                if step % 5 == 0:
                    accelerator.save_state(str(state))
            print(f"epoch {epoch}  loss {np.mean(errors):.5f}", flush=True)
        size = sum(f.stat().st_size for f in state.rglob("*") if f.is_file())
        print(f"{step} steps, last state {size / 1e6:.0f} MB")

    model.eval()
    with torch.no_grad():
        error = (model(records[:500]) - onsets[:500]).abs().mean(0) * N_SAMPLES
    print(f"mean error P {error[0]:.1f} samples, S {error[1]:.1f} samples")


if __name__ == "__main__":
    main()
