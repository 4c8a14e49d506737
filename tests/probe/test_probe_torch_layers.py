"""What the probe notes of linear layers whose sizes do not suit tensor cores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import teho
from probe.probed import Probed, Ran
from support import lacks_framework

pytestmark = pytest.mark.skipif(bool(lacks_framework("torch")), reason=lacks_framework("torch"))

IMPORTS = "import torch, torch._dynamo"
MODEL = """
import torch
from torch import nn
class Model(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.inner = nn.Linear(width, width)
        self.head = nn.Linear(width, words, bias=False)
        TIED
    def forward(self, ids):
        return self.head(self.inner(self.words(ids)))
model = Model(WORDS, WIDTH)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.zeros(2, 3, dtype=torch.long)).sum().backward()
optimizer.step()
"""
PROGRAMS = {
    "tied": MODEL.replace("TIED", "self.head.weight = self.words.weight")
    .replace("WORDS", "5025").replace("WIDTH", "64"),
    "not tied": MODEL.replace("TIED", "").replace("WORDS", "5025").replace("WIDTH", "64"),
    "suited": MODEL.replace("TIED", "").replace("WORDS", "5024").replace("WIDTH", "64"),
    "inputs": MODEL.replace("TIED", "").replace("WORDS", "5024").replace("WIDTH", "66"),
    "classes": """
import torch
from torch import nn
model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
unused = nn.Linear(511, 513)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.zeros(2, 512)).sum().backward()
optimizer.step()
""",
    "images": """
import torch
from torch import nn
model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3), nn.Flatten(), nn.Linear(64, 1001))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.zeros(2, 3, 8, 8)).sum().backward()
optimizer.step()
""",
    "sizes": """
import torch
from torch.utils.data import DataLoader
def pad(rows):
    return torch.nn.utils.rnn.pad_sequence([row for row, _ in rows], True), [y for _, y in rows]
def labels(rows):
    y = torch.nn.utils.rnn.pad_sequence([torch.ones(n).long() for _, n in rows], True)
    return torch.ones(len(rows), 1, 8, 8), y
rows = [(torch.ones(n, 3), n) for n in range(1, 8)]
for batch in DataLoader(rows, batch_size=2, collate_fn=pad): pass
for batch in DataLoader(rows, batch_size=2, collate_fn=labels): pass
for batch in DataLoader([torch.ones(3, 8, 8)] * 7, batch_size=2): pass
for batch in DataLoader([torch.ones(3, 8, n) for n in (8, 9, 8)], collate_fn=list, batch_size=1):
    pass
""",
}  # fmt: skip


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    probed = Probed(tmp_path_factory.mktemp("layers"))
    probed.path = str(Path(teho.__file__).parents[1])
    probed.environment = {"OMP_NUM_THREADS": "1"}
    return Ran(probed.forked(IMPORTS, PROGRAMS), {}, probed.watched())


def layers(ran: Ran, name: str) -> list[dict[str, Any]]:
    done = ran.probed[name]
    assert (done.stderr, done.returncode) == (b"", 0)
    found = ran.only(name).libraries["torch"].get("odd_layers", [])
    assert isinstance(found, list)
    return found


def test_a_vocabulary_that_is_no_multiple_of_8(ran: Ran) -> None:
    (one,) = layers(ran, "tied")
    file, function, line, text = one.pop("made_at")
    assert text in Path(file).read_text().split("\n")[line - 1]
    assert (function, text) == ("Model.__init__", "nn.Linear(width, words, bias=False)")
    share = round(100 * 5025 / (5025 + 64), 2)
    assert one == {"rows": 5025, "columns": 64, "dtype": "float32", "share_percent": share}


def test_a_table_counts_too(ran: Ran) -> None:
    (one,) = layers(ran, "not tied")
    assert one["share_percent"] == round(100 * 5025 / (2 * 5025 + 64), 2)


def test_inputs(ran: Ran) -> None:
    (one,) = layers(ran, "inputs")
    assert (one["rows"], one["columns"]) == (5024, 66)


def test_convolutions_are_counted(ran: Ran) -> None:
    (one,) = layers(ran, "images")
    assert (one["rows"], ran.only("images").libraries["torch"]["convolutions"]) == (1001, 2)


@pytest.mark.parametrize("name", ["suited", "classes"])
def test_suited_sizes_small_layers_and_layers_that_are_not_trained(ran: Ran, name: str) -> None:
    assert layers(ran, name) == []


def test_in_how_many_sizes_batches_came(ran: Ran) -> None:
    done = ran.probed["sizes"]
    assert (done.stderr, done.returncode) == (b"", 0)
    found = [one.batch.get("sizes") for one in ran.only("sizes").loaders]
    assert found == [4, 1, 1, 2]
