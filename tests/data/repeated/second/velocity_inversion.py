"""
verdict: none
stack:
  invert(torch.load("shot.pt"), rounds=300)
  misfit(speed, observed)
  propagate(model, steps=len(target))
  torch.nn.functional.conv2d(now[None, None], STENCIL, padding=1)
why: descend changes speed in place with sub_ and clamp_, so each round propagates through another model
"""
import torch

STENCIL = torch.tensor([[[[0.0, 1.0, 0.0], [1.0, -4.0, 1.0], [0.0, 1.0, 0.0]]]])


def propagate(v, steps, dt=1e-3, dx=10.0):
    past = torch.zeros_like(v)
    now = torch.zeros_like(v)
    now[2, v.shape[1] // 2] = 1.0
    records = []
    for _ in range(steps):
        curl = torch.nn.functional.conv2d(now[None, None], STENCIL, padding=1)[0, 0]
        past, now = now, 2 * now - past + (v * dt / dx) ** 2 * curl
        records.append(now[2])
    return torch.stack(records)


def misfit(model, target):
    synthetic = propagate(model, steps=len(target))
    return (synthetic - target).pow(2).mean()


@torch.no_grad()
def descend(parameter, step, low=1500.0, high=5500.0):
    parameter.sub_(step * parameter.grad / parameter.grad.abs().max())
    parameter.clamp_(low, high)
    parameter.grad.zero_()


def invert(observed, rounds):
    speed = torch.full((120, observed.shape[1]), 2500.0, requires_grad=True)
    curve = []
    for _ in range(rounds):
        loss = misfit(speed, observed)
        loss.backward()
        descend(speed, step=20.0)
        curve.append(loss.item())
    return speed.detach(), curve


if __name__ == "__main__":
    velocity, curve = invert(torch.load("shot.pt"), rounds=300)
    torch.save(velocity, "velocity.pt")
    print(curve[0], curve[-1])
