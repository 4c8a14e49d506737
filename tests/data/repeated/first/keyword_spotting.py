"""
verdict: same
stack:
  train(parser.parse_args())
  enumerate(loader)
  lib:torch/utils/data/dataloader.py:_BaseDataLoaderIter.__next__
  lib:torch/utils/data/_utils/fetch.py:fetch
  self.log_mel(wave)
  mel_bank(self.rate, self.n_fft)
  librosa.filters.mel(sr=sr, n_fft=n_fft, n_mels=80, fmax=sr / 2)
call: mel_bank(self.rate, self.n_fft)
loop: def __getitem__(self, index) | for step, (mel, label) in enumerate(loader) | for epoch in range(args.epochs)
why: the mel filters depend only on the rate and FFT size of the data set, which are set once, but they are designed for each item
"""
import argparse
import csv
import librosa
import numpy as np
import soundfile as sf
import torch
from torch.utils.data import DataLoader, Dataset


def mel_bank(sr, n_fft):
    bank = librosa.filters.mel(sr=sr, n_fft=n_fft, n_mels=80, fmax=sr / 2)
    return bank / bank.sum(axis=1, keepdims=True)


class Keywords(Dataset):
    def __init__(self, table, rate=16000, n_fft=1024):
        with open(table) as handle:
            self.rows = [(r["file"], int(r["label"])) for r in csv.DictReader(handle)]
        self.rate = rate
        self.n_fft = n_fft

    def __len__(self):
        return len(self.rows)

    def log_mel(self, audio):
        power = np.abs(librosa.stft(audio, n_fft=self.n_fft)) ** 2
        return np.log(mel_bank(self.rate, self.n_fft) @ power + 1e-6)

    def __getitem__(self, index):
        path, label = self.rows[index]
        wave, _ = sf.read(path, dtype="float32")
        wave = np.pad(wave, (0, max(0, self.rate - len(wave))))[: self.rate]
        return torch.from_numpy(self.log_mel(wave)), label


def train(args):
    loader = DataLoader(Keywords(args.table), batch_size=32, shuffle=True)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.LazyLinear(12))
    optim = torch.optim.Adam(net.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        for step, (mel, label) in enumerate(loader):
            loss = torch.nn.functional.cross_entropy(net(mel.float()), label)
            optim.zero_grad()
            loss.backward()
            optim.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("table")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--lr", type=float, default=1e-3)
    train(parser.parse_args())
