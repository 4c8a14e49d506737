"""The lessons are true: their commands print what the pages show, and so do the notebooks.

`TEHO_UPDATE_GOLDEN=1` writes the output of this run into the pages; docs/generate.py then makes
the notebooks of them.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from pages import BLOCK, ROOT, UPDATE, played
from test_docs import generator

LEARN = ROOT / "docs" / "learn"
LESSONS = sorted(path.stem for path in LEARN.glob("*.md") if path.stem != "index")


@pytest.mark.parametrize("lesson", LESSONS)
def test_commands_print_what_the_page_shows(lesson: str) -> None:
    page = LEARN / f"{lesson}.md"
    text = page.read_text()
    parts, end = [], 0
    for block, printed in played(text):
        parts += [text[end : block.start()], f"```{block['kind']}\n{printed}```"]
        end = block.end()
        if not UPDATE:
            assert block["body"].rstrip() == printed.rstrip()
    if UPDATE:
        page.write_text("".join([*parts, text[end:]]))
        pytest.skip(f"{page.name} was written anew")


def test_notebooks_are_in_step() -> None:
    notebooks = generator().NOTEBOOKS
    assert [path.stem for path in sorted(notebooks)] == LESSONS
    for path, text in notebooks.items():
        assert path.read_text() == text(), "run docs/generate.py"


@pytest.mark.drawn(2)
@pytest.mark.parametrize("lesson", LESSONS)
def test_a_notebook_prints_what_its_page_shows(
    lesson: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    content = nbformat.read(LEARN / "notebooks" / f"{lesson}.ipynb", as_version=4)
    place = {"metadata": {"path": str(LEARN / "notebooks")}}
    NotebookClient(content, timeout=600, kernel_name="python3", resources=place).execute()
    cells = [cell for cell in content.cells if cell.cell_type == "code"]
    printed = ["".join(one.text for one in cell.outputs if "text" in one) for cell in cells]
    shown = [
        re.sub(r"^\$ .*\n", "", block["body"], flags=re.MULTILINE)
        for block in BLOCK.finditer((LEARN / f"{lesson}.md").read_text())
        if block["kind"] != "python"
    ]
    assert [text for text in printed if text] == [text for text in shown if text]
