"""Tune: what `teho tune` regains of planted faults, without touching the program.

The faults of [planted faults](faults.md) that a loader's settings mend. Each program runs under
`teho tune` with its fault, for 5 min at the most and windows of 3 s; then the program as it is,
with the settings that were found, and as it should be take three turns. *Regained* is the part of
the ideal setting's gain in steps per second that the found settings give; the goal is 80 %. What
cannot be run because PyTorch is not there (`tests/frameworks.sh`) is left out.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

_HERE = Path(__file__).parent
sys.path.append(str(_HERE / "faults"))
sys.path.append(str(_HERE.parent / "tests"))

from cases import CASES, Case, Setting
from common import CACHE, ROOT, SCRIPTS, Figures, Row, environment, say

from teho.experiment.attempt import Program

_PYTHON = ROOT / ".frameworks" / "bin" / "python"
_FAULTS = ("1", "2", "3", "8")
_GOAL_PERCENT = 80.0
_ROUNDS = 3
_LONGEST_S = 120.0


def measure(*, quick: bool) -> list[Row]:
    """Return a row for each fault."""
    if not _PYTHON.exists():
        say("no PyTorch in .frameworks: left out")
        return []
    rows = []
    with tempfile.TemporaryDirectory(prefix="teho-bench-") as home:
        for key in _FAULTS[1:2] if quick else _FAULTS:
            case = next(case for case in CASES if case.key == key)
            rows.append(_row(case, environment(Path(home)), quick=quick))
    return rows


def _row(case: Case, own: Mapping[str, str], *, quick: bool) -> Row:
    env = {**own, **case.environment, "PYTHONWARNINGS": "ignore"}
    faulty = _argv(case, case.faulty)
    subprocess.run([*faulty, "--seconds", "0"], env=env, check=True, stdout=subprocess.DEVNULL)
    faulty += ["--seconds", "600"]
    for_, window, rounds = ("20s", "600ms", 1) if quick else ("5min", "3s", _ROUNDS)
    argv = [str(SCRIPTS / "teho"), "tune", "--for", for_, "--window", window, "--format", "json"]
    say(f"fault {case.key}: teho tune")
    done = subprocess.run(
        [*argv, "--", *faulty], env=env, capture_output=True, text=True, check=False
    )
    if done.returncode not in {0, 1}:
        raise RuntimeError(done.stderr)
    found = json.loads(done.stdout)
    ideal = [*_argv(case, case.ideal or Setting()), "--seconds", "600"]
    window_s = 0.6 if quick else 3.0
    programs = {
        "faulty": (Program(faulty, env, window_s), {}),
        "found": (Program(faulty, env, window_s), found["settings"]),
        "ideal": (Program(ideal, env, window_s), {}),
    }
    speeds: dict[str, list[float]] = {name: [] for name in programs}
    for number in range(rounds):
        for name in list(programs)[:: 1 if number % 2 == 0 else -1]:
            program, settings = programs[name]
            pace = program.run(settings, _LONGEST_S).pace
            if pace is None:
                raise RuntimeError(f"fault {case.key}, {name}: no pace")
            speeds[name].append(pace.steps_per_s)
    before, after, best = (Figures.of(*speeds[name]).median for name in programs)
    # Without settings, what differs is noise.
    regained = 100 * (after - before) / (best - before) if found["settings"] else 0.0
    settings = ", ".join(f"{name}={value}" for name, value in found["settings"].items())
    return Row(
        what=f"fault {case.key}, {case.title}: `{settings or 'nothing'}`, regained",
        unit="%",
        ours=Figures.of(regained),
        ours_text=f"{regained:.0f} ({before:.3g} → {after:.3g}, ideal {best:.3g} steps/s)",
        verdict="yes" if regained >= _GOAL_PERCENT else "**no**",
    )


def _argv(case: Case, setting: Setting) -> list[str]:
    script = _HERE / "faults" / "programs" / f"{case.program}.py"
    data = ["--data", str(CACHE / "faults")]
    return [str(_PYTHON), str(script), *case.words.split(), *setting.words.split(), *data]
