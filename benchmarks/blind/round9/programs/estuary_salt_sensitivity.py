"""Emulator of estuarine mixing, and the sensitivity of its outputs to the inputs."""
import numpy as np
import torch
from torch import nn

INPUTS = ("river flow", "tide range", "wind", "depth", "width", "sea salinity")
BATCH, MAPPED = 64, 10240


def mixing(x):
    flow, tide, wind, depth, width, sea = x.T
    richardson = torch.exp(flow - 1.5 * tide) * torch.sigmoid(depth)
    intrusion = sea * torch.tanh(depth + 0.4 * tide) / (1 + richardson)
    strat = richardson * torch.sigmoid(-wind) + 0.2 * width
    return torch.stack([intrusion, strat, intrusion * strat, tide * wind, torch.sin(sea), richardson], 1)


def fit(generator):
    net = nn.Sequential(
        nn.Linear(6, 128), nn.SiLU(), nn.Linear(128, 128), nn.SiLU(), nn.Linear(128, 6)
    )
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for step in range(3500):
        x = torch.randn(512, 6, generator=generator)
        loss = nn.functional.mse_loss(net(x), mixing(x))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"emulator error {float(loss):.4f}")
    return net


def sensitivities(net, x):
    whole = torch.autograd.functional.jacobian(net, x)
    rows = torch.arange(len(x))
    return whole[rows, :, rows, :]


def main():
    torch.manual_seed(17)
    generator = torch.Generator().manual_seed(17)
    net = fit(generator)
    points = torch.randn(MAPPED, 6, generator=generator)
    strength = torch.zeros(6, 6)
    condition = []
    for part in points.split(BATCH):
        matrices = sensitivities(net, part)
        strength += matrices.abs().sum(0)
        condition.append(torch.linalg.cond(matrices).median())
    strength /= MAPPED
    print("median condition", round(float(torch.stack(condition).median()), 2))
    for name, column in zip(INPUTS, np.round(strength.numpy().T, 3)):
        print(f"{name:14s}", column)


if __name__ == "__main__":
    main()
