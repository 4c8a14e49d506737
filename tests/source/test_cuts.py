"""Whole arrays that are converted although only a part is used, found from a stack and the source.

More than half of the programs are look-alikes: they need the whole array, or almost all of it.
"""

from __future__ import annotations

import textwrap

import pytest

from source.stacks import stack_of
from teho.model.in_source import Need
from teho.source.unneeded import Needs


def found(body, text, *, head="def tile(scene, top, left, size):"):
    """Return the cut of an expression of a function; None if more than a part is used."""
    source = f"{head}\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n"
    every = Needs((made := stack_of(source, text))[1]).find(made[0])
    assert [one.need for one in every] in ([], [Need.PART])
    return every[0].at[0].text if every else None


FLOAT = "scene.astype(np.float32)"
WINDOW = "[:, top : top + size, left : left + size]"
PARTS = {
    "a tile": (f"x = {FLOAT}\nreturn x{WINDOW}", FLOAT),
    "several operations": (
        f"x = {FLOAT}\nx = 10.0 * np.log10(x)\nx = (x - 27.0) / 6.0\nreturn x{WINDOW}.copy()",
        "np.log10(x)",
    ),
    "an operation": (f"x = (scene - 3.5) / 2\nreturn x{WINDOW}", "scene - 3.5"),
    "in place": (f"x = {FLOAT}\nx /= 255.0\nreturn x{WINDOW}", FLOAT),
    "one expression": (f"return torch.from_numpy({FLOAT} / 255.0){WINDOW}", FLOAT),
    "an end with a name": (
        "end = top + size\nx = np.clip(scene, 0, 1)\nreturn x[top:end]",
        "np.clip(scene, 0, 1)",
    ),
    "around a place": (
        "x = np.sqrt(scene)\nreturn x[top - size : top + size + 1]",
        "np.sqrt(scene)",
    ),
    "a numbered part": (
        "x = np.sqrt(scene)\nreturn x[top * size : (top + 1) * size]",
        "np.sqrt(scene)",
    ),
    "around a place, inside the array": (
        "begin = max(0, top - size // 2)\nx = np.sqrt(scene)\nreturn x[begin : begin + size]",
        "np.sqrt(scene)",
    ),
    "its shape": (
        f"x = {FLOAT}\nrows = x.shape[0]\nprint(rows, len(x))\nreturn x[top : top + size]",
        FLOAT,
    ),
    "the mean of the whole": (
        "mean = scene.mean()\nx = scene - mean\nreturn x[top : top + size]",
        "scene - mean",
    ),
    "on a device": (f"x = scene.float()\nx = x.to(left)\nreturn x{WINDOW}", "scene.float()"),
    "twice the same": (
        f"x = {FLOAT}\na = x[top : top + size]\nb = x[top : top + size]\nreturn a, b",
        FLOAT,
    ),
}


@pytest.mark.parametrize(("body", "text"), PARTS.values(), ids=[*PARTS])
def test_a_part_of_the_result_is_cut_out(body, text):
    assert "[" in (found(body, text) or "")


WHOLES = {
    "the whole too": (f"x = {FLOAT}\nreturn x{WINDOW}, x.max()", FLOAT),
    "it is returned": (f"x = {FLOAT}\nif left:\n    return x{WINDOW}\nreturn x", FLOAT),
    "without its borders": (f"x = {FLOAT}\nreturn x[1:-1, 1:-1]", FLOAT),
    "without its first item": (f"x = {FLOAT}\nreturn x[1:]", FLOAT),
    "its first channels": (f"x = {FLOAT}\nreturn x[:, :3]", FLOAT),
    "a limit": (f"x = {FLOAT}\nreturn x[:size]", FLOAT),
    "each second item": (f"x = {FLOAT}\nreturn x[::2]", FLOAT),
    "two parts": (f"x = {FLOAT}\nreturn x[:size], x[size:]", FLOAT),
    "two windows": (
        f"x = {FLOAT}\nreturn x[top : top + size], x[left : left + size]",
        FLOAT,
    ),
    "all windows": (
        f"x = {FLOAT}\nreturn [x[row : row + size] for row in range(0, len(x), size)]",
        FLOAT,
    ),
    "a loop over windows": (
        f"x = {FLOAT}\nfor row in range(0, 99, size):\n    print(x[row : row + size])",
        FLOAT,
    ),
    "without its padding": (f"x = {FLOAT}\nreturn x[pad : pad + size]", FLOAT),
    "as long as another": (f"n = len(left)\nx = {FLOAT}\nreturn x[top : top + n]", FLOAT),
    "a border at both ends": (f"x = {FLOAT}\nreturn x[top : size - top]", FLOAT),
    "from a place to the end": (f"x = {FLOAT}\nreturn x[top : top - size]", FLOAT),
    "from one place to another": (f"x = {FLOAT}\nreturn x[top:left]", FLOAT),
    "around its middle": (
        f"x = {FLOAT}\nm = left // 2\nreturn x[m - size : m + size]",
        FLOAT,
    ),
    "around its middle, with a begin": (
        f"begin = (left - size) // 2\nx = {FLOAT}\nreturn x[begin : begin + size]",
        FLOAT,
    ),
    "the box of its content": (
        f"a, b, w, h = cv2.boundingRect(scene)\nx = {FLOAT}\nreturn x[b : b + h, a : a + w]",
        FLOAT,
    ),
    "a mask": (f"x = {FLOAT}\nreturn x[scene > 3]", FLOAT),
    "an order": (f"x = {FLOAT}\nreturn x[top]", FLOAT),
    "a batch of one": (f"x = {FLOAT}\nreturn x[0]", FLOAT),
    "a sum": (f"x = np.cumsum({FLOAT})\nreturn x[top : top + size]", FLOAT),
    "a transform": (f"x = np.fft.rfft2({FLOAT})\nreturn x[top : top + size]", FLOAT),
    "a product": (f"x = {FLOAT} @ left\nreturn x[top : top + size]", FLOAT),
    "transposed": (f"x = {FLOAT}.T\nreturn x[top : top + size]", FLOAT),
    "an unknown function": (f"x = left({FLOAT})\nreturn x[top : top + size]", FLOAT),
    "lists": ("x = scene + left\nreturn x[top : top + size]", "scene + left"),
    "a text": ("x = scene * 3\nreturn x[top : top + size]", "scene * 3"),
    "the part is changed": (f"x = {FLOAT}\nx[top : top + size] = 0\nreturn x", FLOAT),
    "kept": (f"x = scene.cache = {FLOAT}\nreturn x[top : top + size]", FLOAT),
    "a function that is defined here": (
        f"x = {FLOAT}\nleft(lambda: x)\nreturn x[top : top + size]",
        FLOAT,
    ),
    "into another array": (
        "x = np.sqrt(scene, out=left)\nreturn x[top : top + size]",
        "np.sqrt(scene, out=left)",
    ),
}


@pytest.mark.parametrize(("body", "text"), WHOLES.values(), ids=[*WHOLES])
def test_the_whole_result_may_be_needed(body, text):
    assert found(body, text) is None


def test_one_item_of_a_table():
    head = "class Rows:\n  def __getitem__(self, index):"
    body = "  x = self.table.astype(np.float32) / 255.0\n  return x[index]"
    source = f"{head}\n{textwrap.indent(body, '  ')}\n"
    every = Needs((made := stack_of(source, "self.table.astype(np.float32)"))[1]).find(made[0])
    assert [one.at[0].text for one in every] == ["x[index]"]
    body = "for row in range(len(scene)):\n    x = np.sqrt(scene)\n    print(x[row])"
    assert found(body, "np.sqrt(scene)") == "x[row]"
    body = "x = np.sqrt(scene)\nfor row in range(len(scene)):\n    print(x[row])"
    assert found(body, "np.sqrt(scene)") is None
