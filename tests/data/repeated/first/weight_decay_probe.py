"""
verdict: none
stack:
  probe(torch.load("layers.pt"))
  condition(layer)
  torch.linalg.svdvals(w)
why: the tensors in the list are changed in place by mul_ and add_ through the dict of the state
"""
import torch


def noise_like(t, scale):
    return scale * t.std() * torch.ones_like(t).bernoulli_(0.5).sub_(0.5)


def perturb(state, decay=0.99, scale=0.01):
    for name, tensor in state.items():
        if name.endswith("weight"):
            tensor.mul_(decay).add_(noise_like(tensor, scale))


def condition(w):
    s = torch.linalg.svdvals(w)
    return (s[0] / s[-1]).item()


def probe(state, rounds=100):
    layers = [t for name, t in state.items() if name.endswith("weight") and t.ndim == 2]
    trace = []
    for r in range(rounds):
        row = []
        for layer in layers:
            row.append(condition(layer))
        trace.append(row)
        perturb(state)
    return torch.tensor(trace)


if __name__ == "__main__":
    torch.save(probe(torch.load("layers.pt")), "condition.pt")
