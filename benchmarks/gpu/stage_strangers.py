"""Programs of strangers, each with a fault that Teho's developers do not know, and controls.

The programs are a blind round (docs/blind.md). The stage runs each program under
`teho run`, and keeps its report and its recording. Judges who do not know Teho's rules compare
the reports with the answers of the round afterwards. Then the stage runs the repaired programs:
each program counts its steps, so the gain of the repair is known.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec
from result import Row

from stage import LackingError, Rows, Stage

_BLIND = Path(__file__).resolve().parents[1] / "blind"
ROUND = _BLIND / "round11"
_SECONDS, _CURED_S = 9.0, 4.0


def measure(stage: Stage) -> None:
    """Do a piece for each program, then for each repaired program."""
    cases = msgspec.toml.decode((ROUND / "answers.toml").read_bytes())
    folder = stage.work / "strangers"
    shutil.copytree(ROUND / "programs", folder / "programs")
    rates: dict[str, float] = {}
    for name in cases:
        stage.piece(name, lambda name=name: _recorded(stage, folder, name, rates), least_s=25)
    for name in [name for name in cases if (ROUND / "cured" / f"{name}.patch").exists()]:
        stage.piece(
            f"{name}, repaired", lambda name=name: _repaired(stage, folder, name, rates), least_s=15
        )


def _recorded(stage: Stage, folder: Path, name: str, rates: dict[str, float]) -> Rows:
    seconds = stage.seconds(_SECONDS, 2.0)
    argv = [stage.python, str(folder / "programs" / f"{name}.py"), f"{seconds:g}"]
    env = {"TEHO_THRESHOLDS": str(_BLIND / "thresholds.toml")}
    words = ["run", "--report", "none", "--name", name, "--", *argv]
    output = stage.teho(*words, env=env)
    stage.keep(Path(stage.teho("show", name, "--path").strip()), f"{name}/recording")
    for ending, options in (("txt", []), ("json", ["--format", "json"])):
        file = stage.work / f"{name}.{ending}"
        file.write_text(stage.teho("report", name, *options, env=env), encoding="utf-8")
        stage.keep(file, f"{name}/report.{ending}")
    rates[name] = _steps(output) / seconds
    yield Row("steps per second", "1/s", teho=round(rates[name], 3), why=_last(output))


def _repaired(stage: Stage, folder: Path, name: str, rates: Mapping[str, float]) -> Rows:
    repaired = stage.work / "repaired" / name
    shutil.copytree(folder / "programs", repaired / "programs")
    patch = ROUND / "cured" / f"{name}.patch"
    stage.run(["patch", "-s", "-p1", "-d", repaired / "programs", "-i", patch])
    seconds = stage.seconds(_CURED_S, 2.0)
    output = stage.run([stage.python, str(repaired / "programs" / f"{name}.py"), f"{seconds:g}"])
    rate = _steps(output) / seconds
    before = rates.get(name)
    yield Row(
        "times as fast as before the repair", teho=round(rate / before, 3) if before else None,
        why=_last(output) if before else "the program was not measured before its repair",
    )  # fmt: skip


def _steps(output: str) -> float:
    """Return the number of steps in a line such as `done: 412 steps`."""
    found = re.search(r"^done: *([\d_,.]+)", output, re.MULTILINE)
    if not found:
        raise LackingError(f"the program printed no number of steps: {_last(output)}")
    return float(found[1].replace(",", "").replace("_", ""))


def _last(output: str) -> str:
    return (output.strip().splitlines() or ["no output"])[-1]
