"""Predict the fare of taxi trips from the pickup cell, the drop-off cell and the hour."""
import torch
from torch import nn

N_CELLS = 600_000
DIM = 32
BATCH = 512
STEPS = 420


class TripModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.Embedding(N_CELLS, DIM)
        self.hours = nn.Embedding(168, 8)
        self.head = nn.Sequential(
            nn.Linear(2 * DIM + 8, 128),
            nn.ReLU(),
            nn.Linear(128, 64),
            nn.ReLU(),
            nn.Linear(64, 1),
        )
        nn.init.normal_(self.cells.weight, std=0.1)

    def forward(self, pickup, dropoff, hour):
        z = torch.cat([self.cells(pickup), self.cells(dropoff), self.hours(hour)], dim=1)
        return self.head(z).squeeze(1)


def make_trips(n, gen):
    # Most trips start and end in a small number of busy cells.
    skew = torch.rand(n, 2, generator=gen) ** 4
    cells = (skew * N_CELLS).long().clamp_(max=N_CELLS - 1)
    hour = torch.randint(0, 168, (n,), generator=gen)
    distance = (cells[:, 0] - cells[:, 1]).abs().float() / N_CELLS
    rush = ((hour % 24 > 6) & (hour % 24 < 10)).float()
    fare = 1.0 + 4.0 * distance + 0.6 * rush + 0.1 * torch.randn(n, generator=gen)
    return cells[:, 0], cells[:, 1], hour, fare


def main():
    torch.manual_seed(5)
    gen = torch.Generator().manual_seed(6)
    trips = make_trips(BATCH * 200, gen)
    held_out = make_trips(20_000, gen)
    model = TripModel()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    loss_fn = nn.HuberLoss()

    running = 0.0
    for step in range(STEPS):
        pick = torch.randint(0, len(trips[0]), (BATCH,), generator=gen)
        pickup, dropoff, hour, fare = (column[pick] for column in trips)
        optimizer.zero_grad()
        loss = loss_fn(model(pickup, dropoff, hour), fare)
        loss.backward()
        optimizer.step()
        running += loss.item()
        if (step + 1) % 70 == 0:
            print(f"step {step + 1:4d}  loss {running / 70:.4f}", flush=True)
            running = 0.0

    model.eval()
    with torch.no_grad():
        error = (model(*held_out[:3]) - held_out[3]).abs().mean().item()
    print(f"mean absolute error on held-out trips {error:.4f}")


if __name__ == "__main__":
    main()
