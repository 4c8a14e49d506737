"""Pages whose commands are run, and print what the page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"```(?P<kind>console|python|text)\n(?P<body>.*?)```", re.DOTALL)
UPDATE = os.environ.get("TEHO_UPDATE_GOLDEN") == "1"


def run(command: str) -> str:
    """Return what a command prints, run from the root with this environment's Python and Teho."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return subprocess.run(
        command, shell=True, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True,
        check=True, timeout=600,
    ).stdout  # fmt: skip


def played(text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Yield the blocks of a page, each with what it would hold if it were written now.

    Of `console`, the lines after `$ ` are run; an `export` counts for all commands below. What
    `python` prints is the `text` below it.
    """
    exports = ""
    shown_by_python = None
    for block in BLOCK.finditer(text):
        if block["kind"] == "console":
            printed = ""
            for command in re.findall(r"^\$ (.*)$", block["body"], re.MULTILINE):
                printed += f"$ {command}\n{run(exports + command)}"
                if command.startswith("export "):
                    exports += f"{command}\n"
        elif block["kind"] == "python":
            printed = block["body"]
            shown_by_python = run(f"{exports}{sys.executable} -c '{block['body']}'")
        else:
            assert shown_by_python is not None
            printed = shown_by_python
        yield block, printed
