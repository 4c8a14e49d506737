"""This section shows whether Teho reports the right share of the time for each line.

This benchmark runs the programs in `benchmarks/lines/programs`. The authors of these programs did
not know Teho. Each program runs a loop of two to five marked lines, and measures the time of each
marked line with a clock. Each program runs separately with each of three tools: Teho, py-spy
and scalene. For each marked line, the benchmark compares two shares of the time of all marked
lines: the share that the program itself measured, and the share that the tool reports.

- *Largest error* is the largest difference between these two shares, in percentage points, over all
  marked lines of all programs.
- *Programs with the right top line* are programs for which the tool found the most expensive line,
  which is the line with the largest share. A line whose share is at most 5 percentage points
  smaller than the largest share also counts as the most expensive line.
- *Lines with the right activity* are lines for which Teho reports the right activity of the main
  thread, for example *waiting for data*. The author of the program wrote down the right activity of
  each line.
- *Loaded machine* means that two other processes keep both cores busy.

A program that uses neither PyTorch nor NumPy runs under every installed version of CPython. A
program that uses PyTorch or NumPy runs only under the Python in `.frameworks`, which
`tests/frameworks.sh` installs. With py-spy and scalene, all programs run under the Python in
`.frameworks`. A program runs for 20 s with Teho, and for 10 s with py-spy or scalene.

A tool computes each share from samples, so each share has a random error. If a tool takes 500
samples, the error of about one share in 40 is larger than 5 percentage points. So if Teho's share
for a line of a program is wrong by more than 5 percentage points, the program runs three more
times. Teho's figure is then the mean of these three runs. py-spy runs with `--idle`, takes 100
samples per second, and stops the program for each sample. scalene reports only the time in a line
itself, not the time in the functions that the line calls. So if these functions are in the same
file, the benchmark adds the time of these functions to scalene's time for the line.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from common import ROOT, SCRIPTS, Figures, Row, environment, say

from probe import peers_for
from teho.explain.where import doing_of
from teho.model.program import Doing
from teho.model.watched import WatchedProcess
from teho.store.probe import watched_processes

_PROGRAMS = Path(__file__).parent / "lines" / "programs"
_FRAMEWORKS = ROOT / ".frameworks" / "bin" / "python"
_SECONDS, _SHORT_S = 20.0, 10.0
_MORE_RUNS = 3
_ERROR_POINTS = 5.0
_MINORS = range(8, 15)
_KINDS = {
    "python": {Doing.PYTHON},
    "native": {Doing.NATIVE},
    "threads": {Doing.THREADS},
    "sleeping": {Doing.SLEEPING},
    "disk": {Doing.DISK},
    "process": {Doing.PROCESS},
    "lock": {Doing.LOCK},
}

Shares = dict[str, float]


class Case(NamedTuple):
    """A program under a Python."""

    path: Path
    python: str

    @property
    def marks(self) -> dict[str, int]:
        """Its stretches, and the line of each."""
        lines = self.path.read_text(encoding="utf-8").splitlines()
        found = ((re.search(r"#: (\w+)$", line), number) for number, line in enumerate(lines, 1))
        return {match[1]: number for match, number in found if match}

    @property
    def kinds(self) -> dict[str, str]:
        """What the main thread does in each, as its author says."""
        tree = ast.parse(self.path.read_text(encoding="utf-8"))
        own = [
            node
            for node in tree.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).startswith("KIND")
        ]
        names: dict[str, dict[str, str]] = {}
        exec(compile(ast.Module(own, []), self.path.name, "exec"), {}, names)
        return names["KIND"]


class Found(NamedTuple):
    """What was found of one program, and what is true."""

    case: Case
    truth: Shares
    shares: Shares
    kinds: Mapping[str, str]
    looks: float = 0.0
    """As many independent looks at the program."""

    @property
    def error(self) -> float:
        """The largest error of a share, in points."""
        return max(abs(self.shares.get(name, 0.0) - true) for name, true in self.truth.items())

    @property
    def is_top_right(self) -> bool:
        """Whether the line with most time is the one that is found to have most."""
        top = max(self.shares, key=lambda name: self.shares[name], default="")
        return self.truth.get(top, 0.0) >= max(self.truth.values()) - _ERROR_POINTS


def measure(*, quick: bool) -> list[Row]:
    programs = sorted(_PROGRAMS.glob("*.py"))
    others = [one for one in programs if not one.name.startswith(("torch_", "numpy_"))]
    has_torch = _FRAMEWORKS.exists()
    main = str(_FRAMEWORKS) if has_torch else sys.executable
    if quick:
        return _rows("quick", [Case(others[0], sys.executable)], _teho, 2.0)
    peers = peers_for(Path(main))
    rows = []
    for load in ("idle", "loaded"):
        with _loaded(is_loaded=load == "loaded"):
            cases = [Case(one, main) for one in (programs if has_torch else others)]
            rows += _rows(f"{_version(main)}, {load}", cases, _teho, _SECONDS)
            for name, call in _peer_calls(peers).items():
                rows += _rows(f"{_version(main)}, {load}", cases, call, _SHORT_S, peer=name)
            for python in _pythons():
                if _version(python) != _version(main):
                    cases = [Case(one, python) for one in others]
                    rows += _rows(f"{_version(python)}, {load}", cases, _teho, _SECONDS)
    return rows


def _rows(
    where: str, cases: list[Case], call: Callable[[Case, float, Path], Found], seconds: float,
    peer: str = "",
) -> list[Row]:  # fmt: skip
    say(f"{where} machine: {len(cases)} programs {'under ' + peer if peer else ''}")
    found = []
    with tempfile.TemporaryDirectory(prefix="teho-bench-") as name:
        for case in cases:
            try:
                one = call(case, seconds, Path(name))
                if one.error > _ERROR_POINTS and not peer and seconds >= _SECONDS:
                    say(_told(one))
                    one = _mean([call(case, seconds, Path(name)) for _ in range(_MORE_RUNS)])
            except (subprocess.CalledProcessError, ValueError, OSError) as error:
                say(f"{case.path.name}: {error}")
                continue
            found.append(one)
            say(_told(one))
    if not found:
        return []
    worst = max(found, key=lambda one: one.error)
    top = sum(one.is_top_right for one in found)
    kinds = [
        (one.kinds.get(name), true)
        for one in found
        for name, true in one.case.kinds.items()
        if true in _KINDS and name in one.kinds
    ]
    right = sum(found_kind in {kind.value for kind in _KINDS[true]} for found_kind, true in kinds)
    text = f"{worst.error:.1f} ({worst.case.path.stem})"
    what = f"Python {where} machine: largest error of the share of a line"
    top_what = f"Python {where} machine: programs with the right top line, of {len(found)}"
    if peer:
        unmeasured = Figures.of(0.0)
        return [
            Row(what=what, unit="points", ours=unmeasured, ours_text=" ", peer=peer,
                theirs=Figures.of(worst.error), theirs_text=text),
            Row(what=top_what, unit="programs", ours=unmeasured, ours_text=" ", peer=peer,
                theirs=Figures.of(top), theirs_text=str(top)),
        ]  # fmt: skip
    rows = [
        Row(what=what, unit="points", ours=Figures.of(worst.error), ours_text=text,
            budget=_ERROR_POINTS),
        Row(what=top_what, unit="programs", ours=Figures.of(top), ours_text=str(top),
            verdict="yes" if top == len(found) else "**no**"),
    ]  # fmt: skip
    if kinds:
        what = f"Python {where} machine: lines with the right activity, of {len(kinds)}"
        rows.append(Row(what=what, unit="lines", ours=Figures.of(right), ours_text=str(right)))
    return rows


def _mean(runs: list[Found]) -> Found:
    def mean(shares: list[Shares]) -> Shares:
        names = shares[0]
        return {name: sum(one.get(name, 0.0) for one in shares) / len(shares) for name in names}

    first = runs[0]
    found = [{name: one.shares.get(name, 0.0) for name in first.truth} for one in runs]
    looks = sum(one.looks for one in runs)
    return Found(first.case, mean([one.truth for one in runs]), mean(found), first.kinds, looks)


def _told(one: Found) -> str:
    shares = ", ".join(
        f"{name} {one.shares.get(name, 0.0):.1f} ({true:.1f}"
        + (f", {one.kinds[name]}/{one.case.kinds.get(name)})" if name in one.kinds else ")")
        for name, true in one.truth.items()
    )
    return f"{one.case.path.stem:<20} {one.error:5.1f} of {one.looks:4.0f} looks  {shares}"


def _run(argv: list[object], environment_: Mapping[str, str], folder: Path) -> Shares:
    """Run a program, and return the shares of its stretches by its own clocks."""
    done = subprocess.run(
        [str(word) for word in argv], env=environment_, cwd=folder, capture_output=True,
        text=True, check=True, timeout=600,
    )  # fmt: skip
    told = json.loads(next(one for one in done.stdout.splitlines() if one.startswith("{")))
    return _normal(told["stretches"])


def _normal(figures: Mapping[str, float]) -> Shares:
    whole = sum(figures.values())
    return {name: 100 * one / whole for name, one in figures.items()} if whole else {}


def _teho(case: Case, seconds: float, folder: Path) -> Found:
    own = environment(folder)
    home = Path(own["TEHO_HOME"])
    argv = [SCRIPTS / "teho", "run", "--quiet", "--report", "none", "--name", case.path.stem, "--"]
    truth = _run([*argv, case.python, case.path, seconds], own, folder)
    run = max(home.joinpath("runs").iterdir(), key=lambda path: path.stat().st_mtime)
    processes = watched_processes(run, [])
    main = max(processes, key=lambda one: one.wall_s)
    if not main.from_outside:
        say(f"{case.path.stem}: not read from outside: {main.why_inside}")
    lines, kinds = _lines_of(main, case)
    shares = _normal({name: sum(of.values()) for name, of in lines.items()})
    return Found(case, truth, shares, kinds, main.independent_samples)


def _lines_of(
    process: WatchedProcess, case: Case
) -> tuple[dict[str, Counter[Doing]], dict[str, str]]:
    """Return the time of each marked line by what was done, and what most was."""
    by_line = {number: name for name, number in case.marks.items()}
    found: dict[str, Counter[Doing]] = {name: Counter() for name in case.marks}
    for seen in process.stacks:
        for frame in seen.frames:
            if frame.file == str(case.path) and frame.line in by_line:
                found[by_line[frame.line]][doing_of(seen, has_device=False)] += seen.wall_s
                break
    kinds = {name: of.most_common(1)[0][0].value for name, of in found.items() if of}
    return found, kinds


def _peer_calls(peers: Path | None) -> dict[str, Callable[[Case, float, Path], Found]]:
    if peers is None:
        return {}
    return {"py-spy": partial(_py_spy, peers), "scalene": partial(_scalene, peers)}


def _py_spy(peers: Path, case: Case, seconds: float, folder: Path) -> Found:
    raw = folder / "raw"
    argv = [peers / "py-spy", "record", "--idle", "--format", "raw", "-o", raw, "--"]
    truth = _run([*argv, case.python, case.path, seconds], environment(folder), folder)
    found: Counter[str] = Counter()
    for line in raw.read_text(encoding="utf-8").splitlines():
        stack, _, count = line.rpartition(" ")
        for name, number in case.marks.items():
            if f"{case.path.name}:{number})" in stack:
                found[name] += int(count)
    return Found(case, truth, _normal(found), {})


def _scalene(peers: Path, case: Case, seconds: float, folder: Path) -> Found:
    told = folder / "scalene.json"
    argv = [peers / "scalene", "run", "--cpu-only", "-o", told, case.path, "---", seconds]
    truth = _run([*argv], environment(folder), folder)
    files = json.loads(told.read_bytes())["files"]
    lines = next(one["lines"] for path, one in files.items() if path.endswith(case.path.name))
    names = ("n_cpu_percent_python", "n_cpu_percent_c", "n_sys_percent")
    of_line = {one["lineno"]: sum(one.get(name, 0.0) for name in names) for one in lines}
    found = {
        name: sum(of_line.get(line, 0.0) for line in _with_calls(case.path, number))
        for name, number in case.marks.items()
    }
    return Found(case, truth, _normal(found), {})


def _with_calls(path: Path, number: int) -> set[int]:
    """Return a line and those of the file's own functions that it leads to."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = {
        node.name: node
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name != "main"
    }
    found, todo = {number}, [number]
    for line in todo:
        names = {
            getattr(node.func, "id", getattr(node.func, "attr", ""))
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and node.lineno == line
        }
        for function in (functions[name] for name in names if name in functions):
            inside = set(range(function.lineno, (function.end_lineno or function.lineno) + 1))
            todo += sorted(inside - found)
            found |= inside
    return found


@contextmanager
def _loaded(*, is_loaded: bool) -> Iterator[None]:
    argv = [sys.executable, "-c", "while True: sum(range(1000))"]
    busy = [subprocess.Popen(argv) for _ in range((os.cpu_count() or 1) if is_loaded else 0)]
    try:
        yield
    finally:
        for one in busy:
            one.kill()
            one.wait()


def _pythons() -> list[str]:
    """Return a CPython of each minor version that is found."""
    found = {}
    for minor in _MINORS:
        for path in os.get_exec_path():
            python = Path(path, f"python3.{minor}")
            if python.is_file() and _version(str(python)).startswith(f"3.{minor}."):
                found.setdefault(minor, str(python))
        for folder in sorted(Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python")):
            found.setdefault(minor, str(folder))
    return list(found.values())


def _version(python: str) -> str:
    code = "import platform; print(platform.python_version())"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


if __name__ == "__main__":
    seconds = float(sys.argv[1])
    chosen = [Case(Path(one), sys.argv[2]) for one in sys.argv[3:]]
    for row in _rows("chosen", chosen, _teho, seconds):
        print(row.cells())
