"""The lessons as notebooks: what a page says, its commands and its Python, to be run again."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

__all__ = ["LESSONS", "notebook"]

_LEARN = Path(__file__).parent / "learn"
LESSONS = ("when-a-gpu", "feeding", "watching", "cpus-instead", "from-slow-to-fixed")
_FENCED = re.compile(r"```(console|python|text)\n(.*?)```\n?", re.DOTALL)
_LINK = re.compile(r"\]\(")
_TOP = """\
import os
from pathlib import Path

if not Path("examples/learn").is_dir():  # the commands are run in the source's top folder
    os.chdir("../../..")
os.environ["TEHO_HOME"] = "examples/learn"  # the recordings of the lessons"""


def notebook(lesson: str) -> str:
    """Return a lesson as a notebook without outputs, in the form that Jupyter keeps on disk."""
    title, rest = (_LEARN / f"{lesson}.md").read_text(encoding="utf-8").split("\n## ", 1)
    # Prose, then for each fence: its language, its text, the prose after it.
    prose, *parts = _FENCED.split("## " + rest)
    cells = [_prose(title), _code(_TOP), _prose(prose)]
    for language, body, after in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        if language == "python":
            cells.append(_code(body))
        elif language == "console" and (commands := _commands(body)):
            cells.append(_code("\n".join(["%%bash", *commands])))
        cells.append(_prose(after))
    content = {
        "cells": [cell for cell in cells if cell["source"]],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 4,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _commands(body: str) -> list[str]:
    """Return a console's commands, but for exports: the first cell has those."""
    lines = re.findall(r"^\$ (.*)$", body, re.MULTILINE)
    return [line for line in lines if not line.startswith("export ")]


def _prose(text: str) -> dict[str, Any]:
    # A notebook lies one folder deeper than its page.
    return {"cell_type": "markdown", "metadata": {}, "source": _LINK.sub("](../", text.strip())}


def _code(text: str) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": text.strip(),
    }
