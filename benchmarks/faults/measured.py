"""Run a program under Teho and under TraceML, and return what each of them found."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cases import TIME_CAUSES, Case, Setting
from common import CACHE, ROOT, SCRIPTS, environment, say

__all__ = ["Found", "Skipped", "Workshop", "found_in", "with_traceml"]

_HERE = Path(__file__).parent
_FRAMEWORKS = ROOT / ".frameworks"
_WITH_DATA = ("train_images", "train_files", "train_tokens", "train_pipeline")
"""Programs that keep their generated data in a folder."""
_SPEED = re.compile(r"([\d.]+) steps/s")
_OPEN_DELAY_US = 2000
_LONGEST_S = 150
_SHORTEST_JOB_S = 5
_SHORTER = 0.6
"""Settings of which only the speed is needed run for this part of the time."""


class Skipped(Exception):  # noqa: N818 - nothing went wrong
    """A case cannot be run here; the text says why."""


@dataclass(frozen=True)
class Found:
    """The result of one run."""

    top: str | None
    """Teho: the first time cause; TraceML: its primary diagnosis."""
    action: str = ""
    abstained: tuple[str, ...] = ()
    """Time causes that were not judged."""
    steps_per_s: float = 0.0
    """By the program's own count."""


def found_in(report: Mapping[str, Any], steps_per_s: float = 0.0) -> Found:
    """Return the causes of lost time in a report (JSON)."""
    abstained = tuple(lack["kind"] for lack in report["abstentions"] if lack["kind"] in TIME_CAUSES)
    top = next((one for one in report["findings"] if one["kind"] in TIME_CAUSES), None)
    if top is None:
        return Found(None, "", abstained, steps_per_s)
    return Found(top["kind"], top["action"], abstained, steps_per_s)


class Workshop:
    """Runs programs.

    Args:
        home: the folder of the recordings.
        seconds: training time of a program with a fault.
        python: the Python that runs the programs; None: the Python with the tests' frameworks.
        programs: the folder of the programs; None: the folder beside this file.
        env: the environment; None: the environment of this process, outside a job.
    """

    def __init__(
        self,
        home: Path,
        seconds: float,
        *,
        python: Path | None = None,
        programs: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._python = str(python or _FRAMEWORKS / "bin" / "python")
        self._programs = programs or _HERE / "programs"
        self._data = CACHE / "faults"
        for folder in (home, self._data):
            folder.mkdir(parents=True, exist_ok=True)
        self._seconds = seconds
        # Without this threshold, all runs here would be too short to judge.
        thresholds = home / "thresholds.toml"
        thresholds.write_text(f"[job_too_short]\nelapsed_min_s = {_SHORTEST_JOB_S}\n")
        self._env = {**(environment(home) if env is None else env)} | {
            "PYTHONWARNINGS": "ignore",
            "TEHO_THRESHOLDS": str(thresholds),
        }
        self._prepared: set[str] = set()

    def under_teho(
        self, case: Case, setting: Setting, seed: int, name: str, *, limit_s: float = _LONGEST_S
    ) -> Found:
        """Record a program and return what the report says; it is ended after `limit_s`.

        Raises:
            Skipped: it cannot be run here.
            RuntimeError: it failed.
        """
        run = [str(SCRIPTS / "teho"), "run", "--every", "500ms", "--report", "none"]
        run += ["--probe", case.probe, "--name", name, "--"]
        script = self._programs / f"{case.program}.py"
        argv = [self._python, *_torchrun(case), str(script)]
        with self._place(case, setting, seed) as (prefix, words, env):
            command = [*prefix, *run, *_slow_open(case, self._data), *argv, *words]
            output = _output(command, env, min(limit_s, _LONGEST_S))
        report = self.report(name)
        for trouble in report["troubles"]:
            say(f"{name}: {trouble}")
        return found_in(report, _speed(output))

    def report(self, run: str | Path) -> dict[str, Any]:
        """Return the report of a run as JSON."""
        argv = [str(SCRIPTS / "teho"), "report", str(run), "--format", "json"]
        return dict(json.loads(_output(argv, self._env)))

    def path_of(self, run: str) -> Path:
        """Return where a recording lies."""
        return Path(_output([str(SCRIPTS / "teho"), "show", run, "--path"], self._env).strip())

    def under_traceml(self, case: Case, setting: Setting, seed: int) -> Found:
        """Run a program under TraceML, with the lines in it that TraceML asks for.

        Raises:
            Skipped: TraceML cannot be had, or the program cannot be run here.
            RuntimeError: the program failed, or no summary was written.
        """
        traceml = _traceml()
        with tempfile.TemporaryDirectory(prefix="teho-bench-") as logs:
            script = Path(logs) / f"{case.program}.py"
            source = _HERE / "programs" / script.name
            script.write_text(with_traceml(source.read_text(encoding="utf-8")), encoding="utf-8")
            argv = [str(traceml), "run", str(script), "--logs-dir", logs, "--run-name", "run"]
            argv += ["--nproc-per-node", str(case.ranks), "--interval", "0.5", "--args"]
            with self._place(case, setting, seed) as (prefix, words, env):
                found_first = {"PATH": f"{traceml.parent}:{env['PATH']}"}  # its own torchrun
                command = [*prefix, *_slow_open(case, self._data), *argv, *words]
                output = _output(command, {**env, **found_first})
            summary = next(Path(logs).rglob("final_summary.json"), None)
            if summary is None:
                raise RuntimeError(f"TraceML wrote no summary: {output[-2000:]}")
            kind = json.loads(summary.read_bytes())["primary_diagnosis"]["kind"]
        return Found(str(kind), steps_per_s=_speed(output))

    @contextmanager
    def _place(
        self, case: Case, setting: Setting, seed: int
    ) -> Iterator[tuple[list[str], list[str], dict[str, str]]]:
        """Yield what stands before the command, the words after it, and the environment."""
        words = [*case.words.split(), *setting.words.split()]
        if case.program in _WITH_DATA:
            words += ["--data", str(self._data)]
            self._prepare(case.program, words)
        if "--seconds" not in words:
            seconds = self._seconds * (1 if setting == case.faulty else _SHORTER)
            words += ["--seconds", f"{seconds:g}"]
        words += ["--seed", str(seed)]
        env = {**self._env, **case.environment, **setting.environment}
        if setting.memory_mb is None:
            yield [], words, env
            return
        import pytest

        from memory_group import memory_group

        self._forget()
        try:
            with memory_group(setting.memory_mb * 10**6) as members:
                enter = f'echo $$ > {members} && exec "$@"'
                try:
                    yield ["sh", "-c", enter, "sh"], words, env
                finally:  # what a launcher that was killed has left
                    for pid in members.read_text(encoding="ascii").split():
                        os.kill(int(pid), signal.SIGKILL)
        except pytest.skip.Exception as error:
            raise Skipped("no control group with a memory limit can be made here") from error

    def _prepare(self, program: str, words: Sequence[str]) -> None:
        """Have the program generate its data, where it has not yet."""
        if program == "train_pipeline" and "records" not in words:
            return  # the other sources have no files, and TensorFlow takes seconds to start
        key = " ".join([program, *words])
        if key not in self._prepared:
            script = str(self._programs / f"{program}.py")
            _output([self._python, script, *words, "--seconds", "0"], self._env)
            self._prepared.add(key)

    def _forget(self) -> None:
        """Take the data out of the page cache: there it would count against no limit."""
        for path in self._data.glob("corpus-*"):
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def with_traceml(source: str) -> str:
    """Return a program with what TraceML's documentation asks a loop of the user's own to have.

    Raises:
        RuntimeError: the program has no such step.
    """
    begin = "import traceml_ai as traceml\n\ntraceml.init(mode='auto')\n"
    future = "from __future__ import annotations\n"
    step = re.compile(r"^( +)(loss = train_step\(.*\))$", re.MULTILINE)
    changed, count = step.subn(r"\1with traceml.trace_step(model):\n\1    \2", source)
    if count != 1 or future not in changed:
        raise RuntimeError("no single call of train_step to instrument")
    return changed.replace(future, future + begin, 1)


def _torchrun(case: Case) -> list[str]:
    if case.ranks == 1:
        return []
    return ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={case.ranks}"]


def _slow_open(case: Case, data: Path) -> list[str]:
    if not case.slow_opens:
        return []
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise Skipped("no C compiler")
    library = data / "slow_open.so"
    source = _HERE / "slow_open.c"
    _output([compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], None)
    below = [f"OPEN_DELAY_BELOW={data}/", f"OPEN_DELAY_US={_OPEN_DELAY_US}"]
    return ["env", f"LD_PRELOAD={library}", *below]


def _traceml() -> Path:
    """Return TraceML's command, in an environment of its own beside the frameworks."""
    place = CACHE / "traceml"
    command = place / "bin" / "traceml"
    if not command.exists():
        try:
            _output([str(_FRAMEWORKS / "bin" / "python"), "-m", "venv", str(place)], None)
            (packages,) = place.glob("lib/python3*/site-packages")
            (theirs,) = _FRAMEWORKS.glob("lib/python3*/site-packages")
            (packages / "frameworks.pth").write_text(f"{theirs}\n", encoding="utf-8")
            _output([str(place / "bin" / "python"), "-m", "pip", "install", "traceml-ai"], None)
        except RuntimeError as error:
            raise Skipped("TraceML cannot be installed") from error
    return command


def _output(argv: Sequence[str], env: Mapping[str, str] | None, limit_s: float = _LONGEST_S) -> str:
    """Return what a program prints.

    Raises:
        RuntimeError: it failed or took too long.
    """
    with subprocess.Popen(
        argv,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, errors = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired as error:
            os.killpg(process.pid, signal.SIGKILL)
            raise RuntimeError(f"{argv} took longer than {limit_s:.0f} s") from error
    if process.returncode != 0:
        raise RuntimeError(f"{argv} ended with {process.returncode}: {errors[-2000:]}")
    return output


def _speed(output: str) -> float:
    found = _SPEED.findall(output)
    if not found:
        raise RuntimeError(f"the program printed no speed: {output[-500:]}")
    return float(found[-1])
