"""Loops that reduce a tensor element by element, and programs that look like them."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

SOURCE = """
def transcribe(log_p):
    steps, batch, _ = log_p.shape
    texts = []
    for b in range(batch):
        text, last = [], 0
        for t in range(steps):
            symbol = {call}
            {body}
            text.append(symbol)
        texts.append(text)
    return texts
"""
CALL = "log_p[t, b].argmax().item()"


@pytest.mark.parametrize("active", ["log_p[t, b]", "log_p[t, b].argmax()", CALL])
def test_the_best_symbol_of_each_step(active):
    assert found(SOURCE.format(call=CALL, body="pass"), active) == {
        "elements_reduced_singly": {
            "file": "train.py",
            "loop": "12",
            "before": "values = log_p.flatten(2).argmax(-1).tolist()",
            "new": "values[t][b]",
        }
    }


def test_the_largest_value_of_each_step_of_one_text():
    words = found(SOURCE.format(call="log_p[t].max().item()", body="pass"), "log_p[t].max().item()")
    assert (
        words["elements_reduced_singly"]["before"] == "values = log_p.flatten(1).amax(-1).tolist()"
    )
    assert words["elements_reduced_singly"]["loop"] == "14"


@pytest.mark.parametrize(
    ("call", "body"),
    [
        (CALL, "log_p[t + 1, b] += log_p[t, b]"),
        (CALL, "log_p[t, b].mul_(0.5)"),
        (CALL, "log_p = log_p * 0.9"),
        (CALL, "normalise(log_p)"),
        ("log_p[last, b].argmax().item()", "pass"),
        ("log_p[t, b, 0].item()", "pass"),
        ("log_p[t, b].argmax(0).item()", "pass"),
        ("log_p[t, b].argmax()", "pass"),
        ("model(log_p)[t, b].argmax().item()", "pass"),
        ("other[t, b].argmax().item()", "pass"),
    ],
)
def test_other_loops(call, body):
    assert "elements_reduced_singly" not in found(SOURCE.format(call=call, body=body), call)
