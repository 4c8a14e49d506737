"""Weights that each training step writes as text, and programs that look like this."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

SOURCE = """
import json
def main(model, optimizer, loader, log, history):
    for epoch in range(9):
        for step, (x, y) in enumerate(loader):
            loss = nn.functional.mse_loss(model(x), y)
            {back}
            optimizer.step()
            {state}
            {write}
        {after}
"""
PARTS = {
    "back": "loss.backward()",
    "state": "state = {k: v.tolist() for k, v in model.state_dict().items()}",
    "write": 'log.write(json.dumps({"step": step, **state}) + "\\n")',
    "after": "print(epoch)",
}
STATE = PARTS["state"]
DUMPS = 'json.dumps({"step": step, **state})'


def options(active=DUMPS, **changes):
    return found(SOURCE.format(**PARTS | changes), active)


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({}, "lines "),
        ({"active": "v.tolist()"}, "lines "),
        (
            {
                "active": "json.dump([p.tolist() for p in model.parameters()], log)",
                "state": "json.dump([p.tolist() for p in model.parameters()], log)",
                "write": "pass",
            },
            "line ",
        ),
    ],
)
def test_weights_as_text(changes, lines):
    words = options(**changes)["weights_as_text"]
    assert words["lines"].startswith(lines)


LOOKALIKES = {
    "only a number": {"state": "state = {'loss': loss.item()}"},
    "after the epoch": {"state": "pass", "write": "pass", "after": f"{STATE}; log.write({DUMPS})"},
    "seldom": {
        "state": "pass",
        "write": f"if step % 100 == 0:\n                {STATE}; log.write({DUMPS})",
    },
    "no training": {"back": "pass"},
    "the lists are needed": {"write": f"log.write({DUMPS})\n            history(state)"},
    "guesses": {"state": "state = {'guess': model(x).tolist()}"},
}


@pytest.mark.parametrize("changes", LOOKALIKES.values(), ids=[*LOOKALIKES])
def test_text_that_is_not_too_much(changes):
    assert "weights_as_text" not in options(**changes)
