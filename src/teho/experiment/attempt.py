"""One run of a program under the probe, with settings imposed, ended when its pace is known."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from teho.errors import InputError
from teho.experiment.pace import Pace, pace_of
from teho.model.tuned import Settings
from teho.model.watched import Loader, WatchedProcess
from teho.observe.spool import with_probe
from teho.store.probe import watched_processes

__all__ = ["Attempt", "Program"]

_POLL_S = 0.2
_MOMENT_S = 3.0
"""For which a program that was asked to end may go on."""
_TAIL_LINES = 5


class Attempt(NamedTuple):
    """What one run of the program showed."""

    settings: Settings
    elapsed_s: float
    pace: Pace | None = None
    unit: str = ""
    """`step`, `batch`, or empty where none was seen."""
    waited: float | None = None
    """Share of the window for which batches were waited for; None without a loader."""
    process: WatchedProcess | None = None
    """The one that trains."""
    loader: Loader | None = None
    """The one that gave it most batches."""
    used_bytes: int = 0
    """Memory of all its processes together, and"""
    most_bytes: int = 0
    """of the largest of them."""
    ranks: int = 1
    """Processes that train, each with a loader of its own."""
    exit_code: int | None = None
    """None where it was ended here; below 0: a signal's number."""
    tail: str = ""
    """What it wrote last to stderr."""
    problems: tuple[str, ...] = ()

    @property
    def facts(self) -> dict[str, Any]:
        """What the probe noted of PyTorch."""
        return self.process.libraries.get("torch", {}) if self.process else {}

    @property
    def ended(self) -> str:
        """How it ended by itself, in words; empty where it did not."""
        if self.exit_code is None:
            return ""
        if self.exit_code == -signal.SIGKILL:
            return "it was killed (SIGKILL): mostly that is for memory"
        if self.exit_code < 0:
            return f"it was ended by {signal.Signals(-self.exit_code).name}"
        return f"it ended with exit code {self.exit_code}"


class Program:
    """A command that is run again and again.

    Args:
        argv: the command.
        environment: what it is started with, but for the probe's variables.
        window_s: how long it is looked at once it goes steadily.
    """

    def __init__(
        self, argv: Sequence[str], environment: Mapping[str, str], window_s: float
    ) -> None:
        self._argv = list(argv)
        self._environment = environment
        self._window_s = window_s

    def run(
        self, settings: Settings, limit_s: float, made_at: tuple[str, int] | None = None
    ) -> Attempt:
        """Run it until its pace is known, and end it and all its processes.

        Args:
            settings: to impose.
            limit_s: when it is ended though its pace is not known.
            made_at: file and line of the loader that they are for; None for all.

        Raises:
            InputError: it does not start.
        """
        with tempfile.TemporaryDirectory(prefix="teho-tune-", ignore_cleanup_errors=True) as folder:
            run = _Run(Path(folder), self._window_s, settings)
            try:
                run.start(self._argv, self._environment, made_at)
                return run.watch(limit_s)
            finally:
                run.end()


class _Run:
    def __init__(self, folder: Path, window_s: float, settings: Settings) -> None:
        self._folder = folder
        self._window_s = window_s
        self._settings = settings
        self._spool = folder / "probe"
        self._began_s = time.monotonic()
        self._seen: object = None
        self._program: subprocess.Popen[bytes] | None = None

    def start(
        self, argv: list[str], environment: Mapping[str, str], made_at: tuple[str, int] | None
    ) -> None:
        imposed = {**self._settings, **({"made_at": made_at} if made_at else {})}
        environment = {
            **with_probe(environment, str(self._spool)),
            "TEHO_PROBE_STEPS": "1",
            "TEHO_TUNE": msgspec.json.encode(imposed).decode(),
        }
        try:
            with (self._folder / "stderr").open("wb") as errors:
                self._program = subprocess.Popen(
                    argv,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    start_new_session=True,
                )
        except OSError as error:
            raise InputError(
                f"{argv[0]}: {error.strerror}", "a program that starts", f"`command -v {argv[0]}`"
            ) from None

    def watch(self, limit_s: float) -> Attempt:
        """Look at what the probe writes until that is enough, or there is no more."""
        used = most = 0
        while self._program:
            code = self._program.poll()
            is_over = code is not None or time.monotonic() - self._began_s >= limit_s
            if self._has_news() or is_over:
                attempt = self._look(code)
                # Its largest moment is not ours to see; that is its workers' business, mostly.
                sizes = [_memory_bytes(pid) for pid in self._left()]
                used, most = max(used, sum(sizes)), max([most, *sizes])
                if is_over or (attempt.pace and attempt.pace.is_whole):
                    return attempt._replace(used_bytes=used, most_bytes=most)
            time.sleep(_POLL_S)
        raise AssertionError("not started")

    def _has_news(self) -> bool:
        seen = [(path.name, path.stat().st_size) for path in sorted(self._spool.glob("*"))]
        is_new, self._seen = seen != self._seen, seen
        return is_new

    def _look(self, code: int | None) -> Attempt:
        problems: list[str] = []
        found = watched_processes(self._folder, problems)
        attempt = Attempt(
            self._settings,
            time.monotonic() - self._began_s,
            exit_code=code,
            tail=self._tail(),
            problems=tuple(problems),
        )
        process = max(found, key=_work, default=None)
        if process is None:
            return attempt
        times_s = [at_s for one in process.progress for at_s in one.times_s]
        loader = max(process.loaders, key=lambda loader: loader.batches, default=None)
        given = loader.given if loader else ()
        unit = "step" if times_s else "batch" if given else ""
        epochs_s = [one.at_s for one in given if one.is_first]
        pace = pace_of(times_s or [one.at_s for one in given], epochs_s, self._window_s)
        waited = None
        if pace and given:
            inside = (one.wait_s for one in given if pace.from_s < one.at_s <= pace.until_s)
            waited = min(1.0, sum(inside) / (pace.until_s - pace.from_s))
        return attempt._replace(
            pace=pace,
            unit=unit,
            waited=waited,
            process=process,
            loader=loader,
            ranks=sum(map(any, map(_work, found))) or 1,
        )

    def _tail(self) -> str:
        with (self._folder / "stderr").open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
            lines = file.read().decode(errors="replace").strip().splitlines()
        return "\n".join(lines[-_TAIL_LINES:])

    def end(self) -> None:
        """End every process of the run, also one that left its process group."""
        program = self._program
        if program is None:
            return
        # Who is impatient must not leave the half of them behind.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
        try:
            until_s = time.monotonic() + _MOMENT_S
            self._signal(program.pid, signal.SIGTERM)
            while (program.poll() is None or self._left()) and time.monotonic() < until_s:
                time.sleep(0.02)
            self._signal(program.pid, signal.SIGKILL)
            program.wait()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def _signal(self, group: int, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)
        for pid in self._left():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def _left(self) -> list[int]:
        """Return the processes that were started with this run's folder in their environment."""
        mark = f"TEHO_PROBE={self._spool}\0".encode()
        found = []
        for path in Path("/proc").iterdir():
            if path.name.isdigit():
                with contextlib.suppress(OSError):
                    if mark in (path / "environ").read_bytes() + b"\0":
                        found.append(int(path.name))
        return found


def _work(process: WatchedProcess) -> tuple[int, int]:
    steps = max((one.steps for one in process.progress), default=0)
    return steps, max((loader.batches for loader in process.loaders), default=0)


def _memory_bytes(pid: int) -> int:
    """Return what a process holds beyond files that others may share."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    held = (fields.get(name, "0 kB").split()[0] for name in ("RssAnon", "RssShmem"))
    return 1024 * sum(map(int, held))
