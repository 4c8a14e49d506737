"""1-d CNN on heart beats, validates after every epoch."""
import torch
from torch import nn


class Trainer:
    def __init__(self):
        torch.manual_seed(0)
        self.x, self.y = torch.randn(3000, 1, 180), torch.randint(0, 5, (3000,))
        self.vx, self.vy = torch.randn(300, 1, 180), torch.randint(0, 5, (300,))
        self.net = nn.Sequential(
            nn.Conv1d(1, 32, 7, padding=3), nn.ReLU(), nn.Conv1d(32, 48, 7, padding=3), nn.ReLU(),
            nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(192, 5))
        self.opt = torch.optim.Adam(self.net.parameters(), 1e-3)

    def train_epoch(self):
        self.net.train()
        for i in torch.randperm(len(self.x)).split(64):
            loss = nn.functional.cross_entropy(self.net(self.x[i]), self.y[i])
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        return loss.item()

    @torch.no_grad()
    def validate(self):
        self.net.eval()
        return (self.net(self.vx).argmax(1) == self.vy).float().mean().item()

    def fit(self, epochs):
        for e in range(epochs):
            print(e, self.train_epoch(), self.validate(), flush=True)


if __name__ == "__main__":
    Trainer().fit(8)
