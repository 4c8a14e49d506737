"""One run of a program under the probe, with settings imposed, ended when its pace is known."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from teho.experiment.pace import Pace
from teho.experiment.progress import HasNews, read_progress
from teho.experiment.started import Started, ended_words, marked, tail_of
from teho.model.tuned import Settings
from teho.model.watched import Loader, WatchedProcess
from teho.observe.spool import mark_of, with_probe
from teho.store.probe import watched_processes

__all__ = ["Attempt", "TunedProgram"]

_POLL_S = 0.2


class Attempt(NamedTuple):
    """What one run of the program showed."""

    settings: Settings
    elapsed_s: float
    pace: Pace | None = None
    unit: str = ""
    """`step`, `batch`, or empty if none was seen."""
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
    """None if it was ended here; below 0: a signal's number."""
    tail: str = ""
    """What it wrote last to stderr."""
    problems: tuple[str, ...] = ()

    @property
    def facts(self) -> dict[str, Any]:
        """What the probe noted of PyTorch."""
        return self.process.libraries.get("torch", {}) if self.process else {}

    @property
    def ended(self) -> str:
        """How it ended by itself, in words; empty if it did not."""
        return "" if self.exit_code is None else ended_words(self.exit_code)


class TunedProgram:
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
        self._mark = mark_of(str(self._spool))
        self._began_s = time.monotonic()
        self._has_news = HasNews(self._spool)
        self._program: Started | None = None

    def start(
        self, argv: list[str], environment: Mapping[str, str], made_at: tuple[str, int] | None
    ) -> None:
        imposed = {**self._settings, **({"made_at": made_at} if made_at else {})}
        environment = {
            **with_probe(environment, str(self._spool)),
            "TEHO_PROBE_STEPS": "1",
            "TEHO_TUNE": msgspec.json.encode(imposed).decode(),
        }
        self._program = Started(argv, environment, errors=self._folder / "stderr")

    def watch(self, limit_s: float) -> Attempt:
        """Look at what the probe writes until that is enough, or there is no more."""
        used = most = 0
        while self._program:
            code = self._program.poll()
            is_over = code is not None or time.monotonic() - self._began_s >= limit_s
            if self._has_news() or is_over:
                attempt = self._look(code)
                # Its largest moment is not ours to see; that is its workers' business, mostly.
                sizes = [_memory_bytes(pid) for pid in marked(self._mark)]
                used, most = max(used, sum(sizes)), max([most, *sizes])
                if is_over or (attempt.pace and attempt.pace.is_whole):
                    return attempt._replace(used_bytes=used, most_bytes=most)
            time.sleep(_POLL_S)
        raise AssertionError("not started")

    def _look(self, code: int | None) -> Attempt:
        problems: list[str] = []
        sight = read_progress(watched_processes(self._folder, problems), self._window_s)
        attempt = Attempt(
            self._settings,
            time.monotonic() - self._began_s,
            exit_code=code,
            tail=tail_of(self._folder / "stderr"),
            problems=tuple(problems),
        )
        if sight is None:
            return attempt
        return attempt._replace(
            pace=sight.pace,
            unit=sight.unit,
            waited=sight.waited,
            process=sight.process,
            loader=sight.loader,
            ranks=sight.ranks,
        )

    def end(self) -> None:
        """End every process of the run, also one that left its process group."""
        if self._program:
            self._program.end(self._mark)


def _memory_bytes(pid: int) -> int:
    """Return what a process holds beyond files that others may share."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    held = (fields.get(name, "0 kB").split()[0] for name in ("RssAnon", "RssShmem"))
    return 1024 * sum(map(int, held))
