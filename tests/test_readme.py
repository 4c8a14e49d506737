"""The README is true: its commands are run, and print what it shows.

`TEHO_UPDATE_GOLDEN=1` writes the output of this run into it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
BLOCK = re.compile(r"```(?P<kind>console|python|text)\n(?P<body>.*?)```", re.DOTALL)
UPDATE = os.environ.get("TEHO_UPDATE_GOLDEN") == "1"


def shape(text: str) -> list[str]:
    """Reduce figures, ids and blanks to their shape: two runs differ in nothing else."""
    text = re.sub(r"\d{8}-\d{6}-first-\w{4}", "ID", text)
    text = re.sub(r"\d+(?:\.\d+)?", "N", text)
    # A busy machine takes longer, and what is longer is folded elsewhere.
    text = re.sub(r"·\s+", "· ", text.replace("N min N s", "N s"))
    return [re.sub(r"\s+", " ", line).strip() for line in text.strip().splitlines()]


def run(command: str) -> str:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return subprocess.run(
        command, shell=True, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True,
        check=True, timeout=120,
    ).stdout  # fmt: skip


def test_commands_and_their_output() -> None:
    text = README.read_text()
    fresh = text
    shown_by_python = None
    for block in BLOCK.finditer(text):
        if block["kind"] == "console":
            commands = re.findall(r"^\$ (.*)$", block["body"], re.MULTILINE)
            outputs = [run(command) for command in commands]
            parts = [f"$ {command}\n{out}" for command, out in zip(commands, outputs, strict=True)]
            printed = "".join(parts)
        elif block["kind"] == "python":
            printed = block["body"]
            shown_by_python = run(f"{sys.executable} -c '{block['body']}'")
        else:
            assert shown_by_python is not None
            printed = shown_by_python
        if UPDATE:
            fresh = fresh.replace(block[0], f"```{block['kind']}\n{printed}```", 1)
        elif "first" in block["body"]:
            assert shape(block["body"]) == shape(printed)
        else:
            assert block["body"].rstrip() == printed.rstrip()
    if UPDATE:
        README.write_text(fresh)
        pytest.skip("README.md was written anew")


def test_the_first_result_is_short_and_the_test_command_is_named() -> None:
    text = README.read_text()
    first = next(BLOCK.finditer(text))
    assert first["body"].count("\n") <= 25
    assert "make test" in text
    assert "make test" in (ROOT / ".ci" / "run").read_text()
    assert text.count("](https://img") <= 4


def test_links_lead_somewhere() -> None:
    for page in [README, ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
            if not target.startswith(("http://", "https://")):
                assert (page.parent / target).exists(), f"{page}: {target}"
