"""Sizes of layers that are not multiples of 8, where a program chooses them."""

from __future__ import annotations

import pytest

from source.stacks import HEAD, PATH
from teho.model.stack import Frame
from teho.source.parsed import parsed
from teho.source.program import Place
from teho.source.slow_calls.odd_sizes import find_odd_sizes
from teho.source.stack import Level


def sizes(source: str) -> list[tuple[str, str]]:
    file = parsed((HEAD + source).encode())
    assert file is not None
    level = Level(Frame(PATH, "f", 1, ""), Place(PATH, file.module), file, None, "", False)
    return [
        (one.words["old"], one.words["new"]) for one in find_odd_sizes(level.frame.file, level.file)
    ]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("VOCAB = 50257\nhead = nn.Linear(768, VOCAB)", ("VOCAB = 50257", "VOCAB = 50304")),
        (("VOCAB = 50_257\nclass M(nn.Module):\n    def __init__(self):\n"
         "        self.head = torch.nn.Linear(64, VOCAB, bias=False)"),
         ("VOCAB = 50_257", "VOCAB = 50304")),
        ("c = GPT2Config(vocab_size=50257)", ("50257", "50304")),
        ("layer = nn.Linear(in_features=1001, out_features=512)", ("1001", "1024")),
    ],
)  # fmt: skip
def test_the_place_of_a_size(source, found):
    assert sizes(source) == [found]


@pytest.mark.parametrize(
    "source",
    [
        "VOCAB = 50304\nhead = nn.Linear(768, VOCAB)",
        "head = nn.Linear(768, 10)",
        "head = nn.Linear(768, len(vocabulary))",
        "table = nn.Embedding(50257, 768)",
        "VOCAB = 50257\nids = torch.randint(0, VOCAB, (8,))",
    ],
)
def test_look_alikes(source):
    assert sizes(source) == []
