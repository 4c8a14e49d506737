"""Programs of two writers who did not know how repeated work is found.

Each file of `tests/data/repeated` says which stack it is about, and whether a loop repeats the last
calls: `same`, `set` (an inner loop goes through the same values again) or `none`. At the first try,
the first set had 24 of 41 repeated calls found and 10 of 30 others wrongly reported. After these
were mended, the second set had 27 of 32 found and 4 of 28 wrongly reported.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from teho.model.stack import Frame
from teho.source.parsed import parsed
from teho.source.program import Program
from teho.source.purity import Purity
from teho.source.repeated import find_repeated

FOLDER = Path(__file__).parents[1] / "data" / "repeated"
MISSED = {
    "bird_calls",  # a column of a table as an attribute
    "probe_head",  # a model that is not trained
    "smoke_transport",  # a class of its own for the collection
    "solubility_folds",  # a random function with a fixed seed
}
"""Repeated work that is not found: Teho is not sure of it."""


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*/*.py")), ids=lambda path: path.stem)
def test_only_repeated_work_is_found(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    file = parsed(text.encode())
    assert file is not None
    said = ast.get_docstring(file.module.node) or ""
    frames = frames_of(path, text, said)
    found = find_repeated(frames[::-1], Purity(Program({str(path): file}.get)))
    (verdict,) = re.findall(r"^verdict: (\w+)", said, re.MULTILINE)
    if verdict == "none" or path.stem in MISSED:
        # A function with a cache computes again if its cache is too small: the periods show it.
        assert [one for one in found if not one.has_cache] == []
        return
    assert [one for one in found if one.is_same is (verdict == "same")]
    calls = re.findall(r"^call: (.*)", said, re.MULTILINE)
    texts = [one.calls[-1].text for one in found]
    # A call in the planted one is reported if the planted one has something that is not known.
    below = [frame.text for frame in frames[[frame.text for frame in frames].index(calls[0]) :]]
    assert any(one in below for one in texts)


def frames_of(path: Path, text: str, said: str) -> list[Frame]:
    """Return the frames of a case, outermost first."""
    file = parsed(text.encode())
    assert file is not None
    first = file.module.body[0].end_lineno or 0
    (stack,) = re.findall(r"(?s)^stack:\n(.*?)(?:\ncall:|\nloop:|\nwhy:|\Z)", said, re.MULTILINE)
    frames = []
    for line in stack.splitlines():
        word = re.split(r"\s{3,}", line.strip())[0]
        if word.startswith("lib:"):
            _, library, function = word.split(":", 2)
            frames.append(Frame(f"/env/lib/python3.11/site-packages/{library}", function, 0, ""))
            continue
        number = next(
            number
            for number, each in enumerate(text.splitlines(), 1)
            if number > first and word in each
        )
        name = file.function_at(number).name or "<module>"
        frames.append(Frame(str(path), name, number, word))
    return frames
