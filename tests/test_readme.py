"""The README is true: its commands are run, and print what it shows.

`TEHO_UPDATE_GOLDEN=1` writes the output of this run into it.
"""

from __future__ import annotations

import re

import pytest

from pages import BLOCK, ROOT, UPDATE, played

README = ROOT / "README.md"


def shape(text: str) -> list[str]:
    """Reduce figures, ids and line breaks to their shape: two runs differ in nothing else."""
    text = re.sub(r"\d{8}-\d{6}-first-\w{4}", "ID", text)
    text = re.sub(r"\d+(?:\.\d+)?", "N", text)
    # A busy machine gets another verdict.
    text = re.sub(r"(?<=  ok  ).*(?=  python examples)", "", text)
    # A busy machine takes longer, and what is longer is folded elsewhere.
    return text.replace("N min N s", "N s").split()


def test_commands_and_their_output(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two threads of OpenBLAS wait for each other in a loop: beside other tests, 15 times the work.
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    text = README.read_text()
    fresh = text
    for block, printed in played(text):
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
