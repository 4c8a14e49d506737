"""Attention that a program computes step by step, and programs that look like it."""

from __future__ import annotations

import textwrap

import pytest

from source.stacks import HEAD, PATH
from teho.model.stack import Frame
from teho.source.parsed import parsed
from teho.source.program import Place
from teho.source.slow_calls.attention_by_hand import find_attention_by_hand
from teho.source.stack import Level

FORWARD = """
import math
import torch.nn.functional as F
class Attention(nn.Module):
    def forward(self, x, mask=None):
        q, k, v = self.heads(x)
        {body}
        return self.out(y)
"""
CALL = "torch.nn.functional.scaled_dot_product_attention(q, k, v)"


def new_call(body: str) -> str | None:
    inner = textwrap.indent(textwrap.dedent(body).strip(), " " * 8).strip()
    file = parsed((HEAD + FORWARD.format(body=inner)).encode())
    assert file is not None
    function = next(one for one in file.module.every() if one.name == "forward")
    frame = Frame(PATH, "Attention.forward", function.node.lineno + 1, "self.heads(x)")
    level = Level(frame, Place(PATH, function), file, None, "", False)
    found = find_attention_by_hand([level])
    return found.words["new"] if found is not None else None


@pytest.mark.parametrize(
    "body",
    [
        "y = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(64), dim=-1) @ v",
        """
        att = (q @ k.transpose(-2, -1)) * self.scale
        att = att.masked_fill(mask == 0, float("-inf"))
        att = F.softmax(att, dim=-1)
        att = self.attn_dropout(att)
        y = att @ v
        """,
        """
        scores = torch.matmul(q, k.transpose(-1, -2)) / 8
        if mask is not None:
            scores = scores + mask
        weights = self.dropout(scores.softmax(dim=-1))
        y = torch.matmul(weights, v)
        """,
        """
        dots = torch.bmm(q * self.scale, k.mT)
        probs = torch.softmax(dots.float(), -1).to(x.dtype)
        y = torch.bmm(probs, v)
        """,
        "y = (q @ k.permute(0, 1, 3, 2)).softmax(-1).matmul(v)",
    ],
)
def test_attention_step_by_step(body):
    assert new_call(body) == CALL


@pytest.mark.parametrize(
    "body",
    [
        "y = F.scaled_dot_product_attention(q, k, v)",
        # The weights are needed, or changed in another way.
        "att = F.softmax(q @ k.transpose(-2, -1), -1)\ny = att @ v\nself.maps.append(att)",
        "att = F.softmax(q @ k.transpose(-2, -1), -1)\ny = (att * self.bias) @ v",
        "att = F.softmax(q @ k.transpose(-2, -1), -1)\ny = att @ v + att @ q",
        # Another softmax.
        "y = F.softmax(self.gate(x), -1) @ v",
        "y = F.softmax(q @ k.transpose(-2, -1), -1)",
        "y = F.softmax(q @ k, -1) @ v",
        "y = (F.softmax(q @ k.transpose(-2, -1), -1) * v).sum(1)",
        "y = torch.sigmoid(q @ k.transpose(-2, -1)) @ v",
    ],
)
def test_look_alikes(body):
    assert new_call(body) is None
