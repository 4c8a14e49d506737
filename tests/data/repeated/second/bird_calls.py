"""
verdict: set
stack:
  fit(args)
  enumerate(loader)
  lib:torch/utils/data/dataloader.py:_BaseDataLoaderIter.__next__
  lib:torch/utils/data/_utils/fetch.py:fetch
  self.waveform(self.table.path[index])
  librosa.resample(audio, orig_sr=sr, target_sr=self.rate, res_type="kaiser_best")
call: self.waveform(self.table.path[index])
loop: for epoch in range(opts.epochs)
why: each epoch decodes and resamples the same recordings, only in another order
"""
import argparse

import librosa
import pandas as pd
import soundfile as sf
import torch
from torch.utils.data import DataLoader, Dataset


class Calls(Dataset):
    def __init__(self, csv, rate=22050, seconds=5):
        self.table = pd.read_csv(csv)
        self.rate = rate
        self.length = rate * seconds

    def __len__(self):
        return len(self.table)

    def waveform(self, path):
        audio, sr = sf.read(path, dtype="float32")
        if audio.ndim > 1:
            audio = audio.mean(axis=1)
        audio = librosa.resample(audio, orig_sr=sr, target_sr=self.rate, res_type="kaiser_best")
        return librosa.util.fix_length(audio, size=self.length)

    def __getitem__(self, index):
        wave = torch.from_numpy(self.waveform(self.table.path[index]))
        return wave, int(self.table.label[index])


def fit(opts):
    net = torch.nn.Sequential(torch.nn.Conv1d(1, 32, 400, 160), torch.nn.ReLU(),
                              torch.nn.AdaptiveAvgPool1d(1), torch.nn.Flatten(), torch.nn.Linear(32, 20))
    optimizer = torch.optim.AdamW(net.parameters(), lr=opts.lr)
    loader = DataLoader(Calls(opts.csv), batch_size=32, shuffle=True)
    for epoch in range(opts.epochs):
        for step, (wave, label) in enumerate(loader):
            loss = torch.nn.functional.cross_entropy(net(wave[:, None]), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    torch.save(net.state_dict(), "calls.pt")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("csv")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--lr", type=float, default=3e-4)
    args = parser.parse_args()
    fit(args)
