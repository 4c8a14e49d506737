"""Planted faults that appear only on a GPU, and the same programs without the fault.

The stage writes which cause Teho names first. It uses the code of `make faults`, with one seed.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

from cases import Case, Setting
from gpu_cases import GPU_CASES, name_of
from result import Row

from stage import PROGRAMS, Rows, Stage

_TESTS = Path(__file__).resolve().parents[2] / "tests"
_NOTHING = "nothing"
_SMALL = {"train_vectors": "--rows 16 --width 32", "solve_systems": "--systems 20"}


def measure(stage: Stage) -> None:
    """Do a piece for each fault."""
    sys.path.append(str(_TESTS))  # `measured` imports modules from there
    from measured import Workshop

    workshop = Workshop(
        stage.work / "faults",
        stage.seconds(12.0, 1.5),
        python=Path(stage.python),
        programs=PROGRAMS,
        env=stage.env,
    )
    for case in GPU_CASES:
        if stage.is_rehearsal:  # a CPU needs seconds for a step that a GPU does in milliseconds
            case = replace(case, words=f"{case.words} {_SMALL[case.program]}")  # noqa: PLW2901
        stage.piece(case.key, lambda case=case: _fault(stage, workshop, case), least_s=50)


def _fault(stage: Stage, workshop: object, case: Case) -> Rows:
    """Yield what was named of the fault and of its mended form, and what mending gains."""
    faulty = _found(stage, workshop, case, case.faulty, name_of(case))
    yield Row(
        "top cause",
        teho=faulty.top or _NOTHING,
        other=case.expected,
        whose="planted",
        why=f"{case.title}; {_judged(faulty.abstained, case)}".rstrip("; "),
    )
    assert case.ideal is not None
    mended = _found(stage, workshop, case, case.ideal, f"{name_of(case)}-mended")
    still = mended.top == case.expected
    yield Row(
        "top cause after the repair",
        teho=mended.top or _NOTHING,
        other=f"not {case.expected}",
        whose="planted",
        why="Teho still names this cause after the repair" if still else "",
    )
    gain = round(mended.steps_per_s / faulty.steps_per_s, 2) if faulty.steps_per_s else None
    yield Row("speed after the repair, times as fast", teho=gain, why=f"`{case.ideal.words}`")


def _judged(abstained: tuple[str, ...], case: Case) -> str:
    return f"{case.expected} was not judged" if case.expected in abstained else ""


def _found(stage: Stage, workshop: object, case: Case, setting: Setting, name: str) -> object:
    """Run a setting, keep its recording and what is expected of it, and return what was found."""
    limit_s = stage.left_s
    found = workshop.under_teho(case, setting, 0, name, limit_s=limit_s)
    path = Path(workshop.path_of(name))
    expected = {"kind": case.expected} if setting == case.faulty else {"not": case.expected}
    file = stage.work / f"{name}.json"
    machine = stage.result.machine
    told = f"{machine['GPU']}, driver {machine.get('driver by NVML', 'unknown')}"
    file.write_text(json.dumps({**expected, "recorded_on": told}) + "\n", encoding="utf-8")
    stage.keep(path, f"{name}/{path.name}")
    stage.keep(file, f"{name}/expected.json")
    return found
