"""Batches that are padded to a fixed width, or to different widths, and programs like them."""

from __future__ import annotations

import textwrap

import pytest

from source.stacks import HEAD, PATH
from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.parsed import parsed
from teho.source.program import Place
from teho.source.slow_calls.padded_batches import find_padded_batches
from teho.source.stack import Level

COLLATE = """
MAX_LEN = 512
class Config:
    max_len = 512
cfg = Config()
def collate(texts, limit=256):
    {before}
    tokens = {array}
    for row, text in enumerate(texts):
        {fill}
    return torch.from_numpy(tokens)
"""
ZEROS = "np.zeros((len(texts), MAX_LEN), dtype=np.int64)"
FILL = "tokens[row, :len(text)] = text"


def found_in(source: str) -> dict[str, CostlyOption]:
    """Return what the search finds in a program that imports PyTorch."""
    file = parsed((HEAD + textwrap.dedent(source)).encode())
    assert file is not None
    frame = Frame(PATH, "<module>", 1, "main()")
    level = Level(frame, Place(PATH, file.module), file, None, "", gets_next=False)
    return {one.name: one for one in find_padded_batches(level.frame.file, level.file)}


def collate(array: str = ZEROS, fill: str = FILL, before: str = "pass", more: str = "") -> str:
    return COLLATE.format(array=array, fill=fill, before=before) + more


@pytest.mark.parametrize(
    ("source", "old"),
    [
        (collate(), "MAX_LEN"),
        (collate("torch.zeros(len(texts), MAX_LEN, dtype=torch.long)"), "MAX_LEN"),
        (collate("torch.full((len(texts), 128), 1)"), "128"),
        (collate("np.zeros((len(texts), cfg.max_len))"), "cfg.max_len"),
        (collate("np.zeros((len(texts), limit))"), "limit"),
        (collate(fill="tokens[row][:len(text)] = torch.tensor(text)"), "MAX_LEN"),
        (collate(fill="n = min(len(text), MAX_LEN); tokens[row, :n] = text[:n]"), "MAX_LEN"),
        (collate("np.zeros((len(texts), 3, 800))", "tokens[row, :, :text.shape[1]] = text"), "800"),
        (collate("np.zeros((len(texts), 800, 40))", "tokens[row, :text.shape[0]] = text"), "800"),
    ],
)
def test_a_fixed_width(source, old):
    found = found_in(source)
    assert list(found) == ["padded_to_width"]
    words = found["padded_to_width"].words
    assert (words["old"], words["new"]) == (old, "longest")
    assert words["before"].startswith("longest = max(")
    assert words["before"].endswith(" for text in texts)")


def test_the_advice_changes_all_arrays_of_this_width():
    more = "\n    mask = np.zeros((len(texts), MAX_LEN))\n    for i, text in enumerate(texts):"
    more += "\n        mask[i, :len(text)] = 1\n"
    source = collate().replace("\n    return torch.from_numpy(tokens)", more)
    file = parsed((HEAD + source).encode())
    assert file is not None
    level = Level(Frame(PATH, "f", 1, ""), Place(PATH, file.module), file, None, "", False)
    both = list(find_padded_batches(level.frame.file, level.file))
    assert {one.at.text for one in both} == {ZEROS, "np.zeros((len(texts), MAX_LEN))"}
    assert both[0].words == both[1].words


def test_a_width_with_a_name():
    source = collate("np.zeros((len(texts), width))", before="width = MAX_LEN")
    (one,) = found_in(source).values()
    assert one.name == "padded_to_name"
    assert one.words["old"] == "width = MAX_LEN"
    assert one.words["new"] == "width = max(len(text) for text in texts)"
    assert one.words["at_name"].startswith("train.py:")


@pytest.mark.parametrize(
    "source",
    [
        # The width is needed elsewhere, or the longest item cannot be written in one line.
        collate(before="positions = np.arange(MAX_LEN)"),
        collate(fill="ids = tokenize(text); tokens[row, :len(ids)] = ids"),
    ],
)
def test_a_fixed_width_without_code(source):
    assert list(found_in(source)) == ["padded_somehow"]


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("def f(tok, texts):\n    return tok(texts, padding='max_length', max_length=512)",
         "padded_to_maximum"),
        (("class Data:\n    def get(self, text):\n"
         "        return self.tok.encode_plus(text, pad_to_max_length=True)"), "padded_to_maximum"),
        ("rows = torch.nn.utils.rnn.pad_sequence(all_rows, batch_first=True)", "padded_once"),
        ("MAX = 256\ndef encode(ids):\n    return ids + [0] * (MAX - len(ids))", "padded_items"),
        ("def encode(x, longest=400):\n    n = len(x)\n    return np.pad(x, (0, longest - n))",
         "padded_items"),
        (COLLATE.format(array=ZEROS, fill=FILL, before="pass").replace("collate", "prepare")
         + "\ndata = prepare(load())", "padded_once"),
        ("def collate(rows):\n    return torch.nn.utils.rnn.pad_sequence(rows)", "width_changes"),
        (("def load(rows):\n    return nn.utils.rnn.pad_sequence(rows)\n"
         "for rows in stream:\n    x = load(rows)"), "width_changes"),
        (collate("np.zeros((len(texts), longest))",
                 before="longest = max(len(one) for one in texts)"), "width_changes"),
        (collate("np.zeros((len(texts), int(lengths.max())))"), "width_changes"),
        (("for x in loader:\n    side = random.choice([320, 352])\n"
         "    x = nn.functional.interpolate(x, size=side)"), "width_changes"),
    ],
)  # fmt: skip
def test_other_padding(source, name):
    assert list(found_in(source)) == [name]


@pytest.mark.parametrize(
    "source",
    [
        # The widths are few: a multiple of 64.
        collate("np.zeros((len(texts), width))",
                before="longest = max(map(len, texts))\n    width = -(-longest // 64) * 64"),
        # All rows have the same length.
        collate(fill="tokens[row] = text"),
        collate(fill="tokens[row, :] = text"),
        collate(fill="tokens[row, :MAX_LEN] = text"),
        collate(fill="tokens[row, :4] = text"),
        # A small table, a table of one item, and an image that is cut.
        collate("np.zeros((len(texts), 16))"),
        collate("np.zeros((512,))", "tokens[:len(text)] = text"),
        ("def crop(image):\n    canvas = np.zeros((512, 512, 3))\n"
        "    canvas[:image.shape[0], :image.shape[1]] = image\n    return canvas"),
        # The width is that of the data.
        ("class Data:\n    def __init__(self, rows):\n"
        "        self.max_len = max(len(row) for row in rows)\n"
        "    def collate(self, rows):\n        x = np.zeros((len(rows), self.max_len))\n"
        "        for i, row in enumerate(rows):\n            x[i, :len(row)] = row\n"),
        # A program that compiles needs the same width for all batches.
        collate(more="\nmodel = torch.compile(model)"),
        "model.compile()\ndef f(tok, texts):\n    return tok(texts, padding='max_length')",
        # Padded to the longest text, and no padding.
        "def f(tok, texts):\n    return tok(texts, padding=True, truncation=True)",
        "def f(tok, texts):\n    return tok(texts, max_length=512, truncation=True)",
        # No item is filled up to a fixed width.
        "def join(a, b):\n    return a + [0] * (len(b) - len(a))",
        "def same(x, k=64):\n    return nn.functional.pad(x, (0, k - x.shape[-1] % k))",
        "def square(x, side=1024):\n    return nn.functional.pad(x, (0, side - x.shape[-1]))",
        "def grid(n):\n    return [0] * (64 - n)",
        # One size for the whole run.
        ("size = random.choice([224, 256])\nfor x in loader:\n"
        "    x = nn.functional.interpolate(x, size=size)"),
        "for x in loader:\n    x = nn.functional.interpolate(x, size=(224, 224))",
        # A histogram, whose rows end at a count.
        ("def table(groups):\n    counts = np.zeros((len(groups), 64))\n"
        "    for i, g in enumerate(groups):\n        counts[i] = np.bincount(g, minlength=64)\n"),
    ],
)  # fmt: skip
def test_look_alikes(source):
    assert found_in(source) == {}


def test_a_program_without_a_model_of_pytorch():
    file = parsed(("import numpy as np\n" + collate()).encode())
    assert file is not None
    level = Level(Frame(PATH, "f", 1, ""), Place(PATH, file.module), file, None, "", False)
    assert list(find_padded_batches(level.frame.file, level.file)) == []
