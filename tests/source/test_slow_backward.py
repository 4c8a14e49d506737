"""Backward passes through all earlier parts of a sequence, and programs that look like them."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

SOURCE = """
class Net(nn.Module):
    def forward(self, x, state):
        hidden, state = self.cell(x, state)
        return self.head(hidden), {kept}
def cut(state):
    return state.detach()
def log(model):
    print(model.weight.grad.norm())
def train(model, optimizer, parts, targets):
    state, total = None, 0.0
    for number, part in enumerate(parts):
        {before}
        {call}
        {loss}
        {backward}
        {after}
    optimizer.step()
"""
PARTS = {
    "kept": "state",
    "before": "target = targets[number]",
    "call": "guess, state = model(part, state)",
    "loss": "loss = nn.functional.mse_loss(guess, target)",
    "backward": "loss.backward(retain_graph=True)",
    "after": "total += loss.item()",
}


def names(**changes):
    parts = PARTS | changes
    active = parts["backward"].rpartition("if x: ")[2]
    return list(found(SOURCE.format(**parts), active, "lib:torch/_tensor.py:Tensor.backward"))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"backward": "(loss / 8).backward(retain_graph=True)"},
        {"call": "state = model(part, state)", "loss": "loss = (state - target).square().mean()"},
        {"call": "h, c = model(part, (h, c))", "loss": "loss = h.mean()"},
        {"after": "total += loss.detach()"},
        {"loss": "error = guess - target\n        loss = error.square().mean()"},
    ],
)
def test_backward_again(changes):
    assert names(**changes) == ["backward_through_all_parts"]


@pytest.mark.parametrize(
    "changes",
    [
        {"backward": "loss.backward()"},
        {"backward": "loss.backward(retain_graph=False)"},
        {"backward": "loss.backward(retain_graph=True, create_graph=True)"},
        {"before": "state = state.detach()"},
        {"before": "state = cut(state)"},
        {"before": "state.detach_()"},
        {"kept": "state.detach()"},  # in the model
        {"after": "optimizer.step()"},  # each part needs its own gradients
        {"after": "norms.append(model.weight.grad.norm())"},
        {"after": "log(model)"},
        {"after": "nn.utils.clip_grad_norm_(model.parameters(), 1.0)"},
        {"call": "guess = model(part, target)"},  # no state
        {"loss": "loss = nn.functional.mse_loss(part, target)"},  # not of the state
        {"backward": "if x: loss.backward(retain_graph=True)"},
    ],
)
def test_other_loops(changes):
    assert names(**changes) == []


def test_two_losses_of_one_step_are_no_sequence():
    source = """
    def train(model, losses, x):
        hidden = model(x)
        for one in losses[:2]:
            loss = one(hidden)
            loss.backward(retain_graph=True)
    """
    assert found(source, "loss.backward(retain_graph=True)") == {}


def test_the_code_for_backward():
    words = found(SOURCE.format(**PARTS), PARTS["backward"])["backward_through_all_parts"]
    assert words == {
        "file": "train.py",
        "loop": "19",
        "line": "23",
        "last": "24",
        "before": "whole_loss = 0.0",
        "new": "whole_loss = whole_loss + loss",
        "after": "whole_loss.backward()",
    }
