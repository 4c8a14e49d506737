"""`teho list` and `teho rm` on terminals of several widths, and `teho list` in other formats."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples/runs/one-idle-gpu"


@pytest.fixture
def two(home: Path) -> Path:
    """Make a home with two runs that have a verdict."""
    for name in ("20261123-094500-one-idle-gpu-aaaa", "20261123-094600-two-idle-gpus-bbbb"):
        shutil.copytree(EXAMPLE, home / "runs" / name)
        description = home / "runs" / name / "run.json"
        content = json.loads(description.read_bytes()) | {"id": name}
        description.write_text(json.dumps(content))
    return home


def on_terminal(columns: int, *words: str, answer: str = "") -> list[str]:
    """Return the lines that a command writes to a terminal."""
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    command = f'stty cols {columns} rows 40; exec "$@"'
    started = subprocess.Popen(
        ["sh", "-c", command, "sh", sys.executable, "-m", "teho", *words],
        stdin=theirs, stdout=theirs, stderr=theirs, env={**environment, "TZ": "UTC"},
        start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    try:
        while more := os.read(ours, 65536):
            shown += more
            if answer and b"[y/N]" in shown:
                os.write(ours, answer.encode())
                answer = ""
    except OSError:  # the end of a terminal
        pass
    started.wait()
    os.close(ours)
    return shown.decode().replace("\r\n", "\n").splitlines()


@pytest.mark.parametrize("columns", [200, 100, 80, 60])
def test_a_list_fits_and_has_the_verdict_and_the_command(two: Path, columns: int) -> None:
    lines = on_terminal(columns, "list")
    assert len(lines) == 3
    assert all(len(line) <= columns for line in lines)
    heads, first, second = lines
    assert [head for head in ("Run", "Verdict", "Command") if head not in heads] == []
    assert first.startswith("20261123-094500-one-idle-gpu-aaaa ")
    assert second.startswith("20261123-094600-two-idle-gpus-bbbb ")
    place = heads.index("Verdict")
    assert first[place:].startswith(("gpu never used  ", "gpu never us…  "))
    command = first[heads.index("Command") :]
    assert command.startswith("python")
    assert ("Began (UTC)" in heads) == (columns >= 100)
    assert ("Ended" in heads) == (columns >= 80)


def test_a_pipe_gets_whole_lines(teho, two: Path) -> None:
    shown = teho("list", env={"COLUMNS": "60"}).stdout
    assert "…" not in shown
    assert "gpu never used" in shown
    assert max(map(len, shown.splitlines())) > 80


@pytest.mark.parametrize("columns", [120, 80])
def test_rm_shows_when_where_who_and_the_verdict(two: Path, columns: int) -> None:
    lines = on_terminal(columns, "rm", "--older-than", "0s", answer="n\n")
    heads = lines[0]
    assert [one for one in ("Verdict", "Host", "User", "Command") if one not in heads] == []
    assert all(len(line) <= columns for line in lines)
    assert "gpu never us" in lines[1]
    assert lines[1][heads.index("Host") :].startswith("g1 ")
    assert any("Delete 2 recordings?" in line for line in lines)
    assert len(list((two / "runs").iterdir())) == 2


def test_levels_and_formats_of_a_list(teho, two: Path, tmp_path: Path) -> None:
    assert teho("list", "--short").stdout == "2 runs: 2 gpu never used\n"
    why = teho("list", "--why").stdout
    assert "Host" in why.splitlines()[0]
    assert "User" in why.splitlines()[0]
    assert "Host" not in teho("list").stdout
    page = tmp_path / "list.html"
    assert teho("list", "-o", str(page)).stdout == ""
    shown = page.read_text(encoding="utf-8")
    assert "<!DOCTYPE html>" in shown
    assert "20261123-094600-two-idle-gpus-bbbb" in shown
    assert "gpu never used" in shown
    rows = tmp_path / "list.json"
    teho("list", "-o", str(rows))
    assert [row["host"] for row in json.loads(rows.read_bytes())] == ["g1", "g1"]


def test_a_damaged_recording_is_in_the_table(teho, two: Path) -> None:
    (two / "runs" / "20261123-094500-one-idle-gpu-aaaa" / "run.json").write_text("{")
    for columns in (200, 60):
        first = on_terminal(columns, "list")[1]
        assert first.startswith("20261123-094500-one-idle-gpu-aaaa")
    assert "damaged" in teho("list").stdout
    asked = teho("rm", "20261123-094500-one-idle-gpu-aaaa", stdin="n\n")
    assert "damaged" in asked.stderr
