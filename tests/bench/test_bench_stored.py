"""What `teho bench` measured before is shown again from its JSON, without timing anything."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from pages import ROOT
from support import TEHO
from teho.model.bench import Bench

STORED = ROOT / "docs" / "learn" / "data" / "solve.json"


def shown(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    # PATH has no program that could be timed.
    return subprocess.run(
        [*TEHO, "bench", *arguments], capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, "PATH": "/nowhere"},
    )  # fmt: skip


def test_json_goes_out_as_it_came_in() -> None:
    assert shown("--from", STORED, "--format", "json").stdout == STORED.read_text()


@pytest.mark.parametrize("form", ["text", "html"])
def test_the_verdict_is_shown(form: str) -> None:
    done = shown("--from", STORED, "--format", form)
    assert done.returncode == 0, done.stderr
    (measured,) = msgspec.json.decode(STORED.read_bytes(), type=Bench).results
    assert measured.verdict.split()[0] in done.stdout


def test_it_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    done = shown("--from", STORED, "--plot", tmp_path / "again.svg")
    assert done.returncode == 0, done.stderr
    assert "<svg" in (tmp_path / "again.svg").read_text()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file"),
        ("not JSON", "expected the JSON that `teho bench --format json` writes"),
        ("{}", "expected the JSON that `teho bench --format json` writes"),
        ("newer", "the schema is teho.bench/999; expected teho.bench/1"),
    ],
)
def test_anything_else_is_refused(tmp_path: Path, content: str | None, said: str) -> None:
    file = tmp_path / "stored.json"
    if content == "newer":
        content = STORED.read_text().replace("teho.bench/1", "teho.bench/999")
    if content is not None:
        file.write_text(content)
    done = shown("--from", file)
    assert done.returncode == 2
    assert said in done.stderr
    assert str(file) in done.stderr


def test_it_takes_no_example_as_well() -> None:
    done = shown("solve", "--from", STORED)
    assert done.returncode == 2
    assert "not both" in done.stderr


@pytest.mark.parametrize(
    "words",
    [["--quick"], ["--on", "cpu:1"], ["--library", "numpy"], ["--for", "1min"], ["--python", "x"]],
)
def test_nor_what_is_for_timing(words: list[str]) -> None:
    done = shown(*words, "--from", STORED)
    assert done.returncode == 2
    assert f"{words[0]} has no effect with --from" in done.stderr
