"""
verdict: none
stack:
  fit(build_net(), *load("spectra.pt"))
  validation_error(net, val_x, val_y)
  model(inputs)
why: the validation set is the same, but the optimiser changes the parameters of the model in each epoch
"""
import torch
from torch import nn


def load(path):
    d = torch.load(path)
    return d["train_x"], d["train_y"], d["val_x"], d["val_y"]


def build_net():
    return nn.Sequential(
        nn.Conv1d(1, 32, 15, padding=7), nn.ReLU(),
        nn.Conv1d(32, 32, 15, padding=7), nn.ReLU(),
        nn.AdaptiveAvgPool1d(8), nn.Flatten(), nn.Linear(256, 1),
    )


@torch.no_grad()
def validation_error(model, inputs, target):
    model.eval()
    predicted = model(inputs)[:, 0]
    return (predicted - target).abs().mean().item()


def fit(net, train_x, train_y, val_x, val_y, patience=10):
    optim = torch.optim.Adam(net.parameters(), lr=1e-3)
    best, waited = float("inf"), 0
    while waited < patience:
        net.train()
        for k in torch.randperm(len(train_x)).split(64):
            loss = (net(train_x[k])[:, 0] - train_y[k]).abs().mean()
            optim.zero_grad()
            loss.backward()
            optim.step()
        error = validation_error(net, val_x, val_y)
        waited = 0 if error < best else waited + 1
        best = min(best, error)
    return best


if __name__ == "__main__":
    print(fit(build_net(), *load("spectra.pt")))
