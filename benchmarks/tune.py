"""This section shows how much lost speed `teho tune` regains in programs with a planted fault.

A [planted fault](faults.md) is a fault that we put into a program on purpose. This section has the
planted faults that settings of the data loader can repair. Each program runs with its fault under
`teho tune`, with time windows of 3 s (`--window`), for at most 5 min. Only the program with fault 3
runs for 10 min. The reason is that the effect of fault 3 is small compared with the random
differences between measurements on a shared machine. We tried fault 3 three times with a limit of
5 min, and `teho tune` never proved a gain.

After `teho tune`, three versions of the program run alternately, three times each. The first
version has the settings that cause the fault. The second version has the settings that `teho tune`
found, and the third version has the ideal settings. The gain of a version is the number of
additional steps per second, compared with the first version. *Regained* is the gain of the second
version divided by the gain of the third version. If `teho tune` proved no gain, *regained* is 0.
The goal is that *regained* is at least 80 %. In the brackets, the first number is the step rate of
the first version. The number after the arrow is the step rate of the second version, and *ideal* is
the step rate of the third version.

`tests/frameworks.sh` installs PyTorch. If PyTorch is missing, the table of this section is empty.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

_HERE = Path(__file__).parent
sys.path.append(str(_HERE / "faults"))
sys.path.append(str(_HERE.parent / "tests"))

from cases import CASES, Case, Setting
from common import CACHE, ROOT, SCRIPTS, Figures, Row, environment, say

from teho.experiment.attempt import TunedProgram
from teho.model.tuned import Settings

_PYTHON = ROOT / ".frameworks" / "bin" / "python"
_FAULTS = ("1", "2", "3", "8")
_GOAL_PERCENT = 80.0
_ROUNDS = 3
_FOR = {"3": "10min"}
"""Time limits of faults whose limit is not 5 min."""
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
    ideal = [*_argv(case, case.ideal or Setting()), "--seconds", "600"]
    window_s, rounds = (0.6, 1) if quick else (3.0, _ROUNDS)
    found = _found(case, faulty, env, window_s, quick=quick)
    programs = {
        "faulty": (TunedProgram(faulty, env, window_s), {}),
        "ideal": (TunedProgram(ideal, env, window_s), {}),
        **({_words(found): (TunedProgram(faulty, env, window_s), found)} if found else {}),
    }
    speeds: dict[str, list[float]] = {name: [] for name in programs}
    for number in range(rounds):
        for name in list(programs)[:: 1 if number % 2 == 0 else -1]:
            program, settings = programs[name]
            pace = program.run(settings, _LONGEST_S).pace
            if pace is None:
                raise RuntimeError(f"fault {case.key}, {name}: no pace")
            speeds[name].append(pace.steps_per_s)
    medians = {name: Figures.of(*several).median for name, several in speeds.items()}
    before, best = medians["faulty"], medians["ideal"]
    # If no setting was found, 0 % is regained: any other measured value is noise.
    after = medians[_words(found)] if found else before
    regained = Figures.of(100 * (after - before) / (best - before))
    return Row(
        what=f"fault {case.key}, {case.title}: gain regained by `{_words(found) or 'no change'}`",
        unit="%",
        ours=regained,
        ours_text=f"{regained} ({before:.3g} → {after:.3g}, ideal {best:.3g} steps/s)",
        verdict="yes" if regained.median >= _GOAL_PERCENT else "**no**",
    )


def _found(
    case: Case, argv: Sequence[str], env: Mapping[str, str], window_s: float, *, quick: bool
) -> Settings:
    """Return the settings that `teho tune` finds; empty if it proves no gain."""
    say(f"fault {case.key}: teho tune")
    for_ = "20s" if quick else _FOR.get(case.key, "5min")
    words = ["--for", for_, "--window", f"{1000 * window_s:.0f}ms"]
    done = subprocess.run(
        [str(SCRIPTS / "teho"), "tune", *words, "--format", "json", "--", *argv],
        env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode not in {0, 1}:
        raise RuntimeError(done.stderr)
    settings: Settings = json.loads(done.stdout)["settings"]
    return settings


def _words(settings: Settings) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def _argv(case: Case, setting: Setting) -> list[str]:
    script = _HERE / "faults" / "programs" / f"{case.program}.py"
    data = ["--data", str(CACHE / "faults")]
    return [str(_PYTHON), str(script), *case.words.split(), *setting.words.split(), *data]
