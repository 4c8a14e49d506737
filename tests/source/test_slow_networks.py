"""Small networks that a module runs one after the other, and programs that look like them."""

from __future__ import annotations

import subprocess

import pytest

from source.test_slow_calls import found
from support import FRAMEWORKS

SOURCE = """
N = 300
class Head(nn.Module):
    def __init__(self, size, hidden):
        super().__init__()
        self.first = nn.Linear(size, hidden)
        {more}
    def forward(self, x):
        return torch.tanh(self.first(x))
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = {made}
    def forward(self, x):
        out = []
        for {loop}:
            out.append({run})
        return {result}
def main(x, y):
    model = Model()
    opt = torch.optim.Adam(model.parameters())
    for _ in range(99):
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        opt.step()
"""
GIVEN = {
    "made": "nn.ModuleList(Head(6, 12) for _ in range(N))",
    "loop": "i, head in enumerate(self.heads)",
    "run": "head(x[i])",
    "result": "torch.stack(out).squeeze(-1)",
    "more": "pass",
}
PLACES = ["forward", "loss.backward()", "opt.step()"]


def networks(place="forward", **changed):
    given = GIVEN | changed
    source = SOURCE.format(**given)
    if place != "forward":
        return found(source, place)
    return found(source, "model(x)", given["run"])


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"loop": "head, one in zip(self.heads, x)", "run": "head(one)"},
        {"made": "nn.ModuleList([nn.Linear(6, 1) for _ in range(50)])"},
        {"made": "nn.ModuleList(nn.Sequential(nn.Linear(6, 9), nn.ReLU()) for _ in range(N))"},
        {"result": "torch.stack(out)"},
    ],
)
def test_equal_networks(changed, place):
    assert list(networks(place, **changed)) == ["networks_in_turn"]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "changed",
    [
        {"made": "nn.ModuleList(Head(6, 12) for _ in range(4))"},
        {"made": "nn.ModuleList(Head(6, 12 + i) for i in range(N))"},
        {"made": "nn.ModuleList(Head(6, 1024) for _ in range(N))"},
        {"made": "nn.ModuleList(nn.GRU(6, 12) for _ in range(N))"},
        {"more": "self.drop = nn.Dropout(0.1)"},
        {"more": "self.norm = nn.BatchNorm1d(12)"},
        # Layers, one after the other.
        {"loop": "i, head in enumerate(self.heads)", "run": "head(out[-1])"},
        {"run": "head(x[i + 1])"},
        {"result": "sum(out)"},
        {"result": "torch.stack(out).sum() + len(self.heads)"},
        {"result": "torch.stack(out, dim=1)"},
    ],
)
def test_other_networks(changed, place):
    assert networks(place, **changed) == {}


CHECK = """
import torch
from torch import nn
torch.manual_seed(0)
{source}
model = Model()
result = model(torch.linspace(-1, 1, 300 * 24).reshape(300, 4, 6))
result.sum().backward()
gradients = sum(one.grad.abs().sum() for one in model.parameters())
print(round(float(result.abs().sum()), 2), round(float(gradients), 1))
"""


@pytest.mark.skipif(not FRAMEWORKS.exists(), reason="no .frameworks: `make test` makes it")
def test_the_code_gives_the_same_results():
    words = networks()["networks_in_turn"]
    before = SOURCE.format(**GIVEN)
    statement = f"self.heads = {GIVEN['made']}"
    loop = (
        f"        out = []\n        for {GIVEN['loop']}:\n            out.append({GIVEN['run']})\n"
    )
    after = before.replace(statement, words["setup"]).replace(loop, f"        {words['run']}\n")
    after = after.replace(words["stacked"], words["outputs"])
    assert statement not in after
    assert "append" not in after
    python = str(FRAMEWORKS / "bin" / "python")
    results = [
        subprocess.run(
            [python, "-c", CHECK.format(source=source)], capture_output=True, text=True, check=True
        ).stdout
        for source in (before, after)
    ]
    assert results[0] == results[1] != ""
