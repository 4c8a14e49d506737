"""A recurrent model of the glottal flow, trained on the air pressure at the lips."""
import numpy as np
import torch
from torch import nn

VOICES, CHUNK, CHUNKS = 32, 100, 8
UPDATES = 12


def recordings(rng):
    time = np.arange(CHUNK * CHUNKS)
    pitch = rng.uniform(0.02, 0.06, (VOICES, 1))
    phase = (pitch * time + rng.uniform(0, 1, (VOICES, 1))) % 1.0
    flow = np.where(phase < 0.6, np.sin(np.pi * phase / 0.6) ** 2, 0.0)
    pressure = np.diff(flow, axis=1, prepend=0.0)
    for delay, gain in ((7, 0.5), (13, -0.3), (29, 0.15)):
        pressure[:, delay:] += gain * pressure[:, :-delay]
    pressure += rng.normal(0, 0.02, pressure.shape)
    to_tensor = lambda a: torch.from_numpy(a.astype(np.float32)).unsqueeze(-1)
    return to_tensor(pressure), to_tensor(flow)


class Inverter(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRU(1, 128, batch_first=True)
        self.head = nn.Linear(128, 1)

    def forward(self, pressure, state):
        hidden, state = self.cell(pressure, state)
        return self.head(hidden), state


def main():
    torch.manual_seed(3)
    rng = np.random.default_rng(3)
    model = Inverter()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for update in range(UPDATES):
        pressure, flow = recordings(rng)
        optimizer.zero_grad()
        state, total = None, 0.0
        for number in range(CHUNKS):
            part = slice(number * CHUNK, (number + 1) * CHUNK)
            guess, state = model(pressure[:, part], state)
            loss = nn.functional.mse_loss(guess, flow[:, part]) / CHUNKS
            loss.backward(retain_graph=True)
            total += loss.item()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if update % 3 == 2:
            print(f"update {update + 1}: error {float(total):.5f}")
    with torch.no_grad():
        pressure, flow = recordings(np.random.default_rng(99))
        guess, _ = model(pressure, None)
    print("correlation", np.corrcoef(guess.flatten().numpy(), flow.flatten().numpy())[0, 1].round(3))


if __name__ == "__main__":
    main()
