"""Recognise worn gears of old windmills from sound recordings."""
import os
import tempfile

import numpy as np
import torch
from scipy.signal import stft
from torch import nn
from torch.utils.data import DataLoader, Dataset

RATE = 8000
CLIPS = 512
EPOCHS = 5
WINDOWS = (128, 256, 512)


def make_clips(seed):
    rng = np.random.default_rng(seed)
    state = rng.integers(0, 4, CLIPS)
    t = np.arange(2 * RATE) / RATE
    clips = np.empty((CLIPS, len(t)), dtype=np.float32)
    for k in range(CLIPS):
        mesh = 120 + 40 * state[k] + rng.normal(0, 4)
        tone = np.sin(2 * np.pi * mesh * t) * (1 + 0.5 * np.sin(2 * np.pi * 3 * t))
        clips[k] = tone + 0.4 * np.sin(2 * np.pi * 2.7 * mesh * t) + rng.normal(0, 0.8, len(t))
    return clips, state


def spectrum(clip):
    bands = []
    for window in WINDOWS:
        _, _, z = stft(clip, RATE, nperseg=window, noverlap=window - 64, padded=False)
        power = np.log1p(np.abs(z[1:65, :240]) ** 2 * 1e4)
        bands.append(power.astype(np.float32))
    return np.concatenate(bands)


class Clips(Dataset):
    def __init__(self, clips, state):
        self.clips = clips
        self.state = state

    def __len__(self):
        return len(self.clips)

    def __getitem__(self, index):
        return torch.from_numpy(spectrum(self.clips[index])), int(self.state[index])


def make_net():
    return nn.Sequential(
        nn.Conv1d(192, 192, 5, stride=4, padding=2), nn.ReLU(),
        nn.Conv1d(192, 384, 3, stride=2, padding=1), nn.ReLU(),
        nn.Conv1d(384, 512, 3, stride=2, padding=1), nn.ReLU(),
        nn.Flatten(), nn.Linear(512 * 15, 256), nn.ReLU(), nn.Linear(256, 4),
    )


def main():
    torch.manual_seed(5)
    torch.set_num_threads(2)
    clips, state = make_clips(3)
    loader = DataLoader(Clips(clips, state), batch_size=16, shuffle=True)
    net = make_net()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-4)
    step = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "gears.pt")
        for epoch in range(EPOCHS):
            right = 0
            for x, y in loader:
                out = net(x)
                loss = nn.functional.cross_entropy(out, y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                right += int((out.argmax(1) == y).sum())
                step += 1
                if step % 2 == 0:
                    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, path)
            print(f"epoch {epoch}: accuracy {right / CLIPS:.3f}", flush=True)


if __name__ == "__main__":
    main()
