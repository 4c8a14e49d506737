"""Work in the `forward` of a module with the same inputs in each step of a training."""

from __future__ import annotations

import pytest

from source.stacks import stack_of
from teho.source.repeated import find_repeated

MODULE = "lib:torch/nn/modules/module.py:_call_impl"
SOURCE = """
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.near = nn.Linear(9, 9)
        self.weight = nn.Parameter(torch.ones(9))
    def forward(self, kernel, x):
        {body}
        return kernel @ self.near(x)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Layer()
    def forward(self, kernel, x):
        return self.first({kernel}, x)
def learned():
    return nn.Parameter(torch.ones(9))
def main(order):
    kernel, x = torch.load("k.pt"), torch.load("x.pt")
    model = Net()
    for epoch in range(100):
        {step}
"""
BODY = "kernel = kernel + torch.eye(len(kernel))\n        kernel = kernel / kernel.sum(dim=1)"
FIRST, SECOND = "kernel + torch.eye(len(kernel))", "kernel / kernel.sum(dim=1)"
STEP = "loss = model(kernel, x).sum(); loss.backward(); optimizer.step()"


def loops(active, library=MODULE, call="model(kernel, x)", inner="kernel", **changes):
    """Return whether the result is the same, and the loop, of each repeated call."""
    source = SOURCE.format(**{"body": BODY, "kernel": inner, "step": STEP} | changes)
    frames, purity = stack_of(source, call, library, f"self.first({inner}, x)", MODULE, active)
    return [(one.is_same, one.loop.text) for one in find_repeated(frames, purity)]


@pytest.mark.parametrize("active", [FIRST, SECOND, "kernel.sum(dim=1)"])
def test_a_kernel_that_each_forward_pass_normalises(active):
    assert loops(active) == [(True, "for epoch in range(100)")]
    parallel = "lib:torch/nn/parallel/distributed.py:forward"
    assert loops(active, library=parallel) == [(True, "for epoch in range(100)")]


@pytest.mark.parametrize(
    ("active", "changes"),
    [
        # The inputs are other ones, or they are trained.
        (FIRST, {"step": "model(kernel[order[epoch]], x)",
                 "call": "model(kernel[order[epoch]], x)"}),
        (FIRST, {"step": "kernel = model(kernel, x)"}),
        (FIRST, {"step": "model(kernel, x); kernel.mul_(0.9)"}),
        (FIRST, {"step": "model(kernel, x); kernel[0] = epoch"}),
        (FIRST, {"inner": "kernel * x"} | {"step": "x = x + 1; model(kernel, x)"}),
        (FIRST, {"step": "kernel = learned(); model(kernel, x)"}),
        ("kernel * self.weight", {"body": "kernel = kernel * self.weight"}),
        ("kernel @ self.near(x)", {}),
        ("torch.rand_like(kernel)", {"body": "kernel = torch.rand_like(kernel)"}),
        (FIRST, {"step": "for i in range(9):\n            part = kernel[i:i + 3]\n"
                         "            model(part, x)", "call": "model(part, x)"}),
        # A container gives its modules other arguments.
        (FIRST, {"library": "lib:torch/nn/modules/container.py:forward"}),
        (FIRST, {"library": "lib:other/engine.py:run"}),
    ],
)  # fmt: skip
def test_what_differs_between_the_passes(active, changes):
    assert [one for one in loops(active, **changes) if one[0]] == []


def test_a_kernel_that_a_function_learns():
    source = SOURCE.format(body=BODY, kernel="kernel", step=STEP)
    source = source.replace('torch.load("k.pt")', "learned()")
    frames, purity = stack_of(
        source, "model(kernel, x)", MODULE, "self.first(kernel, x)", MODULE, FIRST
    )
    assert find_repeated(frames, purity) == []


@pytest.mark.parametrize(
    ("body", "is_found"),
    [
        ("a = np.linalg.inv(a)\n        a = a @ a", True),
        ("if k: a = np.linalg.inv(a)\n        a = a @ a", False),  # `a` depends on itself
        ("for j in range(3): a = a @ a", False),
    ],
)
def test_names_that_get_several_values(body, is_found):
    source = f"""
    def step(a, k):
        {body}
        return a
    def main():
        a = np.load("a.npy")
        for i in range(9): print(step(a, i) * i)
    """
    frames, purity = stack_of(source.replace("\n        ", "\n        "), "step(a, i)", "a @ a")
    assert bool([one for one in find_repeated(frames, purity) if one.is_same]) is is_found
