"""Loops that compute the gradient of one sample at a time, and loops that look like them."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

SOURCE = """
def clipped(model, params, x, y):
    total = [torch.zeros_like(p) for p in params]
    for {target} in {samples}:
        {loss}
        {grads}
        {rest}
    return total
def main(model, optimizer, x, y, gen):
    {params}
    for step in range(200):
        pick = torch.randint(0, 9000, (64,), generator=gen)
        clipped(model, params, {batch}, y[pick])
"""
PARTS = {
    "target": "i",
    "samples": "range(len(x))",
    "loss": "loss = nn.functional.cross_entropy(model(x[i:i + 1]), y[i:i + 1])",
    "grads": "grads = torch.autograd.grad(loss, params)",
    "rest": "total = [t + g for t, g in zip(total, grads)]",
    "params": "params = list(model.parameters())",
    "batch": "x[pick]",
}
BACKWARD = {
    "loss": (
        "model.zero_grad()\n        out = model(x[i].unsqueeze(0))\n"
        "        loss = nn.functional.mse_loss(out, y[i].unsqueeze(0))"
    ),
    "grads": "loss.backward()",
    "rest": "total = [t + p.grad ** 2 for t, p in zip(total, model.parameters())]",
}
"""As for Fisher information."""
ZIP = {
    "target": "xi, yi",
    "samples": "zip(x, y)",
    "loss": "loss = nn.functional.cross_entropy(model(xi[None]), yi[None])",
}


def options(changes):
    parts = PARTS | changes
    active = parts["grads"].rpartition("= ")[2]
    stack = (f"clipped(model, params, {parts['batch']}, y[pick])", active)
    source = SOURCE.format(**parts)
    return found(source, *stack, "lib:torch/autograd/__init__.py:grad")


@pytest.mark.parametrize(
    ("changes", "new"),
    [
        ({}, "grads = [g[i] for g in all_grads.values()]"),
        ({"samples": "range(x.shape[0])"}, "grads = [g[i] for g in all_grads.values()]"),
        (BACKWARD, "for p, g in zip(model.parameters(), all_grads.values()): p.grad = g[i]"),
        (ZIP, "grads = [g[i] for g in all_grads.values()]"),
        ({"params": "params = tuple(model.parameters())"}, "grads = [g[i] for g in all_grads"),
    ],
)
def test_gradients_of_single_samples(changes, new):
    one = options(changes)["gradients_of_samples"]
    assert one["new"].startswith(new)


def test_the_advice_has_the_code():
    one = options({})["gradients_of_samples"]
    assert one["before"] == (
        "`values = {key: p.detach() for key, p in model.named_parameters()}`; "
        "`def loss_of_one(values, x_i, y_i): return nn.functional.cross_entropy("
        "torch.func.functional_call(model, values, (x_i[None],)), y_i[None])`; "
        "`all_grads = torch.func.vmap(torch.func.grad(loss_of_one), in_dims=(None, 0, 0))"
        "(values, x, y)`"
    )
    assert one["removed"].startswith(" Remove line ")
    assert not one["first"]
    numbered = options(ZIP)["gradients_of_samples"]["first"]
    assert "for i, (xi, yi) in enumerate(zip(x, y)):" in numbered


LOOKALIKES = {
    "each sample is a training step": {"rest": "optimizer.step()"},
    "the gradients of all are added": BACKWARD
    | {"loss": BACKWARD["loss"].partition("\n")[2].strip()},
    "gradients of the input": {"params": "params = x"},
    "those of a part of the model": {"params": "params = list(model.head.parameters())"},
    "batches": {"loss": "loss = nn.functional.cross_entropy(model(x[i]), y[i])"},
    "another part of each sample": {
        "loss": "loss = nn.functional.cross_entropy(model(x[i:i + 1, :i]), y[i:i + 1])"
    },
    "the number of the sample is needed": {
        "loss": "loss = i * nn.functional.cross_entropy(model(x[i:i + 1]), y[i:i + 1])"
    },
    "a list of samples": {"batch": "[x[k] for k in pick]"} | ZIP,
    "few samples": {"samples": "range(2)"},
    "graphs are kept": {"rest": "loss.sum().backward(retain_graph=True)"},
    "two losses": {
        "loss": "loss = nn.functional.cross_entropy(model(x[i:i + 1]), y[i:i + 1])\n"
        "        loss = loss + nn.functional.mse_loss(model(x[i:i + 1]), y[i:i + 1])"
    },
    "two models": {"loss": "loss = nn.functional.mse_loss(model(x[i:i + 1]), teacher(x[i:i + 1]))"},
}


@pytest.mark.parametrize("changes", LOOKALIKES.values(), ids=[*LOOKALIKES])
def test_loops_that_need_each_sample(changes):
    assert "gradients_of_samples" not in options(changes)
