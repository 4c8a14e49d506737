"""Pages, messages, docstrings and comments avoid the patterns that have to be read twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from words import READ, ROOT, counted, files, found, texts


def test_what_is_read() -> None:
    read = {text.path.relative_to(ROOT).as_posix() for path in files(READ) for text in texts(path)}
    assert {
        "README.md", "CHANGELOG.md", "pyproject.toml", "mkdocs.yml", "docs/report.md",
        "src/teho/cli/run.py", "src/teho/clusters/files/lumi.toml",
        "src/teho/schedulers/slurm/slurm.sh.j2", "src/teho/show/portal/templates/usage.html",
        "src/teho/show/templates/report.js",
    } <= read  # fmt: skip
    (words,) = (text.words for text in texts(ROOT / "pyproject.toml"))
    assert words.startswith("Shows how well a job uses")


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
        ("a.toml", 'name = "anew"\nnotes = ["nobody reads it", "it is no error"]\n'),
        ("a.toml", '[a]\n[[a.b]]\ntext = """\nIt starts anew,\nat the most twice."""\n'),
        ("a.yml", "site_description: Tells who is told\nnav:\n  - How it speaks: a.md\n"),
        ("a.sh.j2", "#!/bin/bash\n{# anew #}\n# It is no error\n{% if a %}\nset {{ anew }}\n"),
        ("a.html", "<p>Nobody reads</p>\n<b title=\"{{ _('it starts anew here') }}\">x</b>\n"),
        ("a.txt.j2", "{{ one }} is no error,\nand at the most twice.\n"),
        ("a.js", "// it starts anew\nconst a = 'so many of them'; // a\n"),
    ],
)
def test_each_kind_of_text_is_read(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert sum(len(found(passage)) for passage in texts(path)) == 2
