"""Runs a program with the probe and imposed settings, until its pace is known."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from teho.experiment.out_of_memory import memory_failure
from teho.experiment.pace import Pace
from teho.experiment.progress import HasNews, read_progress
from teho.experiment.started import Started, ended_words, marked, tail_of
from teho.model.batch_sizes import MemoryUse
from teho.model.tuned import Settings
from teho.model.watched import Loader, WatchedProcess
from teho.observe.spool import mark_of, with_probe
from teho.store.probe import watched_processes

if TYPE_CHECKING:
    from teho.experiment.memory_meter import MemoryMeter

__all__ = ["Attempt", "TunedProgram"]

_POLL_S = 0.2


class Attempt(NamedTuple):
    """The result of one run of the program."""

    settings: Settings
    elapsed_s: float
    pace: Pace | None = None
    unit: str = ""
    """`step`, `batch`, or empty if none was seen."""
    waited: float | None = None
    """Share of the window in which the program waited for batches; None without a loader."""
    process: WatchedProcess | None = None
    """The process that trains."""
    loader: Loader | None = None
    """The loader that gave this process the most batches."""
    used_bytes: int = 0
    """Memory of all processes together."""
    most_bytes: int = 0
    """Memory of the largest process."""
    ranks: int = 1
    """Number of processes that train, each with a loader."""
    exit_code: int | None = None
    """None if Teho ended the run; below 0: a signal's number."""
    tail: str = ""
    """The last lines that it wrote to stderr."""
    raised: tuple[str, ...] = ()
    """The exceptions that ended its Python processes."""
    memory: MemoryUse = MemoryUse()
    """Its highest memory, if it was measured."""
    out_of_memory: str = ""
    """Why it ran out of memory; empty if it did not, or if this was not measured."""
    why_ended: str = ""
    """More about its end than the exit code shows; empty if there is not more."""
    problems: tuple[str, ...] = ()

    @property
    def facts(self) -> dict[str, Any]:
        """The probe's notes about PyTorch."""
        return self.process.libraries.get("torch", {}) if self.process else {}

    @property
    def ended(self) -> str:
        """How the program ended by itself, in words; empty if it did not."""
        return self.why_ended or ("" if self.exit_code is None else ended_words(self.exit_code))


class TunedProgram:
    """A command that is run again and again.

    Args:
        argv: the command.
        environment: for the command, without the probe's variables.
        window_s: how long a steady pace is measured.
        meter: measures the memory of each run, and ends a run that almost fills it; None: the
            memory is only estimated.
    """

    def __init__(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        window_s: float,
        meter: MemoryMeter | None = None,
    ) -> None:
        self._argv = list(argv)
        self._environment = environment
        self._window_s = window_s
        self._meter = meter

    def run(
        self, settings: Settings, limit_s: float, made_at: tuple[str, int] | None = None
    ) -> Attempt:
        """Run the command until its pace is known, then end it and all its processes.

        Args:
            settings: to impose.
            limit_s: time after which the run is ended even if its pace is not known.
            made_at: file and line of the loader to which the settings apply; None: all.

        Raises:
            InputError: the command does not start.
        """
        imposed = {**settings, **({"made_at": made_at} if made_at else {})}
        with tempfile.TemporaryDirectory(prefix="teho-tune-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            spool = str(folder / "probe")
            environment = {
                **with_probe(self._environment, spool),
                "TEHO_PROBE_STEPS": "1",
                "TEHO_TUNE": msgspec.json.encode(imposed).decode(),
            }
            has_news, used, most = HasNews(Path(spool)), 0, 0
            if self._meter:
                self._meter.begin()
            began_s = time.monotonic()
            program = Started(self._argv, environment, errors=folder / "stderr")
            try:
                while True:
                    code, elapsed_s = program.poll(), time.monotonic() - began_s
                    full = self._meter.sample(mark_of(spool)) if self._meter else ""
                    is_over = code is not None or elapsed_s >= limit_s or bool(full)
                    if has_news() or is_over:
                        attempt = self._with_progress(
                            folder, Attempt(settings, elapsed_s, exit_code=code)
                        )
                        # A higher peak between two samples is mostly memory of the workers.
                        sizes = [_memory_bytes(pid) for pid in marked(mark_of(spool))]
                        used, most = max(used, sum(sizes)), max([most, *sizes])
                        if is_over or (attempt.pace and attempt.pace.is_whole):
                            attempt = attempt._replace(used_bytes=used, most_bytes=most)
                            return self._with_memory(attempt, full)
                    time.sleep(_POLL_S)
            finally:
                program.end(mark_of(spool))

    def _with_progress(self, folder: Path, attempt: Attempt) -> Attempt:
        """Return an attempt with what the probe has written so far."""
        problems: list[str] = []
        processes = watched_processes(folder, problems)
        report = read_progress(processes, self._window_s)
        attempt = attempt._replace(
            tail=tail_of(folder / "stderr"),
            raised=tuple(process.raised.text for process in processes if process.raised),
            problems=tuple(problems),
        )
        if report is None:
            return attempt
        return attempt._replace(
            pace=report.pace,
            unit=report.unit,
            waited=report.waited,
            process=report.process,
            loader=report.loader,
            ranks=report.ranks,
        )

    def _with_memory(self, attempt: Attempt, full: str) -> Attempt:
        """Return an attempt with its memory, and with how it ended if memory ran out."""
        if self._meter is None:
            return attempt
        devices = [str(one) for one in attempt.facts.get("devices", ())]
        lacking, why_ended = memory_failure(
            attempt.exit_code, attempt.raised, attempt.tail, self._meter.kills()
        )
        return attempt._replace(
            memory=self._meter.use(on_gpu=any(not one.startswith("cpu") for one in devices)),
            out_of_memory=lacking or full,
            why_ended=why_ended,
        )


def _memory_bytes(pid: int) -> int:
    """Return the memory of a process without files, which other processes may share."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    sizes = (fields.get(name, "0 kB").split()[0] for name in ("RssAnon", "RssShmem"))
    return 1024 * sum(map(int, sizes))
