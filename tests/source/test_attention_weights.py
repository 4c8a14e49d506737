"""Attention weights that a program computes and does not use."""

from __future__ import annotations

import textwrap

import pytest

from source.stacks import HEAD, PATH
from teho.model.stack import Frame
from teho.source.parsed import parsed
from teho.source.program import Place
from teho.source.slow_calls.attention import find_unused_weights
from teho.source.stack import Level

BLOCK = """
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attention = {layer}(width, 8, batch_first=True)
        self.norm = nn.LayerNorm(width)
    def forward(self, x, mask=None):
        {body}
        return out
"""
CALL = "self.attention(x, x, x, attn_mask=mask)"


def new_calls(body: str, layer: str = "nn.MultiheadAttention") -> list[str]:
    source = BLOCK.format(body=body, layer=layer)
    file = parsed((HEAD + textwrap.dedent(source)).encode())
    assert file is not None
    level = Level(Frame(PATH, "f", 1, ""), Place(PATH, file.module), file, None, "", False)
    return [one.words["new"] for one in find_unused_weights(level.frame.file, level.file)]


@pytest.mark.parametrize(
    ("body", "layer"),
    [
        (f"out, _ = {CALL}", "nn.MultiheadAttention"),
        (f"out, weights = {CALL}", "torch.nn.MultiheadAttention"),
        (f"out = x + {CALL}[0]", "nn.MultiheadAttention"),
        ("out, _ = self.attention(\n            x, x, x,\n            attn_mask=mask,\n        )",
         "nn.MultiheadAttention"),
    ],
)  # fmt: skip
def test_weights_that_are_not_used(body, layer):
    (new,) = new_calls(body, layer)
    assert new.replace("( ", "(") == f"{CALL[:-1]}, need_weights=False)"


@pytest.mark.parametrize(
    ("body", "layer"),
    [
        (f"out, self.weights = {CALL}", "nn.MultiheadAttention"),
        (f"out, w = {CALL}\n        self.last = w.mean()", "nn.MultiheadAttention"),
        (f"both = {CALL}; out = both[0]", "nn.MultiheadAttention"),
        (f"out = {CALL}[1]", "nn.MultiheadAttention"),
        ("out, _ = self.attention(x, x, x, need_weights=False)", "nn.MultiheadAttention"),
        ("out, _ = self.attention(x, x, x, None, False)", "nn.MultiheadAttention"),
        ("out, _ = self.attention(x, x, x, **more)", "nn.MultiheadAttention"),
        ("out, _ = self.other(x, x, x)", "nn.MultiheadAttention"),
        (f"out, _ = {CALL}", "OwnAttention"),
    ],
)
def test_look_alikes(body, layer):
    assert new_calls(body, layer) == []
