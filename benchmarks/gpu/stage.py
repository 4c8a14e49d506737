"""One stage: does its pieces one after the other, until the time of the stage is used up.

A piece yields rows. Each row is written to the stage's file at once, so the file is complete up to
this row if the machine is taken away.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from common import SCRIPTS, machine
from result import Piece, Result, Row, StageState, without_places, write_result

__all__ = ["PROGRAMS", "LackingError", "OutOfTimeError", "Rows", "Stage", "missing_words"]

Rows = Iterable[Row]
PROGRAMS = Path(__file__).resolve().parent / "programs"
_LEAST_FREE_BYTES = 2**30
_INTERRUPTED_S = 3.0
"""Time in which a command must end after an interrupt."""
_VERSIONS = """\
import importlib.metadata as m, json, platform
found = {"Python of the programs": platform.python_version()}
for name in NAMES:
    try:
        found[name] = m.version(name)
    except m.PackageNotFoundError:
        pass
print(json.dumps(found))
"""
_FRAMEWORKS = ("torch", "jax", "numpy", "lightning", "transformers")


class LackingError(Exception):
    """Something that a piece needs is missing; the text says what."""


class OutOfTimeError(Exception):
    """The stage's time is used up."""


class Stage:
    """The state that all pieces of a stage use.

    Attributes:
        result: the result, which is written to the stage's file.
        python: the Python that has the frameworks; programs run in this Python.
        is_rehearsal: whether a stand-in replaces the driver. All pieces are then short.
        work: a folder for temporary files.
        env: the environment of all processes that the stage starts.
        devices: what `teho devices --format json` printed about the GPUs.
        no_gpu: why there is no GPU; empty if there is one.
        last_errors: the last line on stderr of the latest command.
    """

    def __init__(
        self, options: argparse.Namespace, env: Mapping[str, str], work: Path, deadline_s: float
    ) -> None:
        began = datetime.now(timezone.utc).isoformat(timespec="seconds")
        self.result = Result(options.stage, began, is_rehearsal=options.rehearse)
        self.python: str = options.python
        self.is_rehearsal: bool = options.rehearse
        self.work = work
        self.env = dict(env)
        self.devices: dict[str, Any] = {}
        self.no_gpu = ""
        self.last_errors = ""
        self._most: int | None = options.first
        self._out: Path = options.out
        self._kept: Path = options.kept
        self._deadline_s = deadline_s
        self._write()

    @property
    def left_s(self) -> float:
        """The rest of the stage's time."""
        return self._deadline_s - time.monotonic()

    def seconds(self, real: float, rehearsal: float = 1.5) -> float:
        """Return a duration: `real` with a GPU, `rehearsal` in a rehearsal."""
        return rehearsal if self.is_rehearsal else real

    def look(self) -> None:
        """Note the machine: the GPU, and versions. This never fails."""
        facts = [fact for fact in machine() if not fact.startswith("GPUs:")]
        self.result.machine |= dict(zip(("date", "CPU", "system", "packages"), facts, strict=False))
        self.result.machine["user"] = "root" if os.geteuid() == 0 else "an ordinary user"
        code = _VERSIONS.replace("NAMES", repr(_FRAMEWORKS))
        try:
            self.result.machine |= json.loads(self.run([self.python, "-c", code], limit_s=30))
        except (RuntimeError, OutOfTimeError, ValueError) as error:
            self.result.machine["frameworks"] = f"unknown: {error}"
        try:
            told = json.loads(self.teho("devices", "--format", "json", limit_s=60))
        except (RuntimeError, OutOfTimeError, ValueError) as error:
            self.no_gpu = f"`teho devices` gave no answer: {error}"
        else:
            self._note_devices(told)
        if self.no_gpu:
            self.result.machine["GPU"] = f"none: {self.no_gpu}"
        self._write()

    def _note_devices(self, told: Mapping[str, Any]) -> None:
        self.devices = next((one for one in told["gpus"] if one["devices"]), {})
        if not self.devices:
            self.no_gpu = "; ".join(one["why"] for one in told["gpus"]) or "no GPU"
            return
        names = [device["name"] for device in self.devices["devices"]]
        self.result.machine["GPU"] = ", ".join(
            f"{names.count(name)} × {name}" for name in dict.fromkeys(names)
        )
        self.result.machine |= self.devices["versions"]

    @property
    def gpu_name(self) -> str:
        """The model of the first GPU."""
        return str(self.devices["devices"][0]["name"])

    def signals(self) -> dict[str, Any]:
        """Return each signal of the first GPU, or the reason why it is missing (`teho devices`)."""
        return dict(next(iter(self.devices["signals"].values())))

    def piece(
        self,
        name: str,
        measure: Callable[[], Rows],
        *,
        least_s: float = 10.0,
        needs_gpu: bool = True,
    ) -> Piece:
        """Do one piece. If it fails, note the reason, so that the next piece can begin.

        Args:
            name: the name of the piece.
            measure: yields the rows of the piece.
            least_s: the piece begins only if this time is left.
            needs_gpu: whether the piece is skipped if there is no GPU.
        """
        piece = Piece(name)
        self.result.pieces.append(piece)
        began_s = time.monotonic()
        try:
            self._check(least_s, needs_gpu=needs_gpu)
            for row in measure():
                piece.rows.append(row)
                self._write()
        except LackingError as error:
            piece.state, piece.why = "skipped", str(error)
        except OutOfTimeError as error:
            piece.state, piece.why = "out of time", str(error)
        except Exception as error:  # noqa: BLE001 - the other pieces must still run
            piece.state, piece.why = "failed", f"{type(error).__name__}: {error}"[:500]
        piece.took_s = round(time.monotonic() - began_s, 1)
        print(f"{self.result.stage}: {name}: {piece.state} {piece.why}", file=sys.stderr)
        self._write()
        return piece

    def _check(self, least_s: float, *, needs_gpu: bool) -> None:
        """Raise an error if a piece cannot begin."""
        if self._most is not None and len(self.result.pieces) > self._most:
            raise LackingError(f"only the first {self._most} pieces were requested")
        if needs_gpu and self.no_gpu:
            raise LackingError(f"no GPU: {self.no_gpu}")
        if self.left_s < self.seconds(least_s, 2.0):
            raise OutOfTimeError("the time of the stage is used up")
        free = shutil.disk_usage(self.work).free
        if free < _LEAST_FREE_BYTES:
            raise LackingError(f"only {free / 2**20:.0f} MiB of disk are free, needed 1 GiB")

    def run(
        self,
        argv: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        limit_s: float = 300.0,
        codes: Sequence[int] = (0,),
    ) -> str:
        """Run a command to its end, and return what it printed on stdout.

        Args:
            argv: the command.
            env: more variables for it.
            limit_s: the command is ended after this time, or at the stage's deadline.
            codes: exit codes that do not count as a failure.

        Raises:
            OutOfTimeError: the command took too long.
            LackingError: there is no such command.
            RuntimeError: the command failed.
        """
        limit_s = min(limit_s, self.left_s)
        if limit_s <= 0:
            raise OutOfTimeError("the time of the stage is used up")
        words = [str(word) for word in argv]
        try:
            process = subprocess.Popen(
                words, env={**self.env, **(env or {})}, text=True, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
            )  # fmt: skip
        except FileNotFoundError as error:
            raise LackingError(f"there is no {words[0]}") from error
        try:
            output, errors = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired as error:
            _end(process)
            raise OutOfTimeError(f"`{_short(words)}` was ended after {limit_s:.0f} s") from error
        self.last_errors = (errors.strip().splitlines() or [""])[-1]
        if process.returncode not in codes:
            said = (errors.strip() or output.strip() or "no error was printed").splitlines()[-1]
            if "No module named" in said:
                raise LackingError(f"`{_short(words)}`: {said}")
            raise RuntimeError(f"`{_short(words)}` ended with {process.returncode}: {said[:300]}")
        return output

    def teho(self, *words: object, **options: Any) -> str:
        """Run a command of Teho; see `run`."""
        return self.run([SCRIPTS / "teho", *map(str, words)], **options)

    def program(self, name: str, *words: object) -> list[str]:
        """Return the command of one of the programs."""
        return [self.python, str(PROGRAMS / f"{name}.py"), *map(str, words)]

    def record(
        self, name: str, argv: Sequence[str], *, probe: str = "off", env: Mapping[str, str] = {}
    ) -> tuple[Path, str]:
        """Run a program under `teho run`; return its recording and what it printed.

        Raises:
            OutOfTimeError: it took too long.
            RuntimeError: it failed.
        """
        words = ["run", "--every", "500ms", "--report", "none", "--probe", probe, "--name", name]
        output = self.teho(*words, "--", *argv, env=env)
        return Path(self.teho("show", name, "--path").strip()), output

    def keep(self, path: Path, name: str) -> None:
        """Keep a recording or a file for the archive."""
        target = self._kept / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, target, dirs_exist_ok=True)
        else:
            shutil.copy(path, target)
        for one in [target, *target.rglob("*")]:
            if one.suffix in {".json", ".jsonl"}:
                one.write_text(without_places(one.read_text("utf-8")), encoding="utf-8")

    def end(self) -> None:
        """Note that the stage has ended."""
        self.result.state = StageState.ENDED
        self._write()

    def _write(self) -> None:
        write_result(self.result, self._out)


def missing_words(reading: Any) -> str:
    """Return why a value in Teho's JSON is missing; empty if the value is not missing."""
    if isinstance(reading, dict) and reading.get("type") == "missing":
        return f"{reading['reason']}: {reading['detail']}"
    return ""


def _end(process: subprocess.Popen[str]) -> None:
    """End a command and its children: first with SIGINT, then with SIGKILL."""
    for number, wait_s in ((signal.SIGINT, _INTERRUPTED_S), (signal.SIGKILL, None)):
        try:
            os.killpg(process.pid, number)
            process.communicate(timeout=wait_s)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue
        else:
            return


def _short(words: Sequence[str]) -> str:
    return " ".join(Path(word).name if word.startswith("/") else word for word in words)[:120]
