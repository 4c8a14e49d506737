"""Pages, messages, docstrings and comments avoid the patterns that have to be read twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from words import READ, counted, found, texts


def test_few_patterns_are_left() -> None:
    lines, rates = counted(READ)
    assert set(rates) == {"pages", "messages", "docstrings", "comments"}
    assert max(rates.values()) < 10, "\n".join(lines)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.md", "Each run takes turns with one alone.\n\nNobody reads `that of`.\n"),
        (
            "a.py",
            '"""It is held against the limit.\n\n    Where it is missing, 0.\n    """\n',
        ),
        ("a.py", "# The file tells where to look, so many times.\n"),
        ("a.py", 'print(f"{1} GPUs are held, and it is no error")\n'),
        ("a.py", 'print("the recorder starts anew " "at the most twice")\n'),
    ],
)
def test_each_kind_of_text_is_read(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert sum(len(found(passage)) for passage in texts(path)) == 2
