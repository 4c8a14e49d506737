"""Vigour of vines on terraces, from a graph of neighbouring plants."""
import numpy as np
import torch
from torch import nn

VINES, NEIGHBOURS, STEPS = 3600, 16, 60
SENSORS = 16


def terraces(rng):
    place = rng.uniform(0, 300, (VINES, 2))
    height = np.floor(place[:, 1] / 25) * 3 + rng.normal(0, 0.2, VINES)
    water = np.sin(place[:, 0] / 40) + 0.05 * height
    sensors = water[:, None] * rng.normal(0, 0.3, SENSORS) + rng.normal(0, 1, (VINES, SENSORS))
    vigour = np.tanh(water) + 0.1 * rng.normal(0, 1, VINES)
    points = np.column_stack([place, 10 * height])
    return [torch.from_numpy(a.astype(np.float32)) for a in (points, sensors, vigour)]


class EdgeLayer(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2 * inputs, outputs), nn.ReLU(), nn.Linear(outputs, outputs))

    def forward(self, x, neighbours):
        around = x[neighbours]
        centre = x.unsqueeze(1).expand_as(around)
        self.messages = self.net(torch.cat([centre, around - centre], dim=-1))
        return self.messages.amax(1)


class VigourNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = EdgeLayer(SENSORS, 64)
        self.second = EdgeLayer(64, 64)
        self.head = nn.Linear(64, 1)

    def forward(self, x, points):
        neighbours = torch.cdist(points, points).topk(NEIGHBOURS + 1, largest=False).indices[:, 1:]
        x = torch.relu(self.first(x, neighbours))
        x = torch.relu(self.second(x, neighbours))
        return self.head(x).squeeze(1)


def distributions(model):
    record = {}
    for name, parameter in model.named_parameters():
        record[name] = np.histogram(parameter.detach().numpy(), bins=128)
        record[name + ".grad"] = np.histogram(parameter.grad.numpy(), bins=128)
    for name in ("first", "second"):
        record[name + ".messages"] = np.histogram(getattr(model, name).messages.detach().numpy(), bins=128)
    return record


def main():
    torch.manual_seed(26)
    rng = np.random.default_rng(26)
    points, sensors, vigour = terraces(rng)
    known = torch.from_numpy(rng.random(VINES) < 0.7)
    model = VigourNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    log = []
    for step in range(STEPS):
        guess = model(sensors, points)
        loss = (guess - vigour)[known].square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log.append(distributions(model))
        if step % 30 == 29:
            unseen = (guess - vigour)[~known].square().mean().item()
            print(f"step {step + 1}: known {loss.item():.4f}, unseen {unseen:.4f}")
    edges = log[-1]["second.messages"][1]
    print(f"messages between {edges[0]:.2f} and {edges[-1]:.2f}")


if __name__ == "__main__":
    main()
