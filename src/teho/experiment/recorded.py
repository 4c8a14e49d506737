"""One recorded run of a program under one placement, ended early once its pace is known."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from teho.errors import InputError, RecordingError
from teho.experiment.outputs import Printed, printed_by
from teho.experiment.placement import Placement
from teho.experiment.sample import sample_of
from teho.experiment.started import Started, ended_words, tail_of
from teho.experiment.window import ENOUGH, POLL_S, Enough
from teho.model.compared import Sample
from teho.model.run import Run
from teho.observe.job_processes import RECORDED
from teho.observe.spool import mark_of, spool_of
from teho.observe.supervisor import RECORDER_CORES
from teho.store.layout import replace_file, run_file, runs_directory
from teho.store.read import read_run

__all__ = ["EARLY", "OVER", "Recorded", "Runner"]

_SEAL_S = 60.0
"""For which the recorder may go on once the program has ended."""
_RECENT = 100
"""So many recordings may have begun meanwhile."""
OVER = "out of time"
EARLY = "ended with its comparison"
"""Why a program was ended, as `End.on_purpose` has it; or `ENOUGH`."""


class Recorded(NamedTuple):
    """What one run showed, and what it printed."""

    sample: Sample
    printed: Printed | None = None
    """None if it failed."""


class Runner:
    """A command that is recorded again and again, on other cores and GPUs each time.

    Args:
        argv: returns the command for a placement.
        environment: what it is started with, but for what the placement sets.
        home: where recordings go.
        tags: of all its recordings.
        window_s: how long a run is measured once it goes steadily; None: each runs to its end.
    """

    def __init__(
        self,
        argv: Callable[[Placement], Sequence[str]],
        environment: Mapping[str, str],
        home: Path,
        tags: Mapping[str, str],
        window_s: float | None,
    ) -> None:
        self._argv = argv
        self._environment = environment
        self._home = home
        self._tags = tags
        self._window_s = window_s

    def __call__(self, placement: Placement, limit_s: float) -> Recorded:
        """Run it once.

        Args:
            placement: what it may use.
            limit_s: when it is ended though nothing is known yet.

        Raises:
            InputError: it does not start, or is not recorded.
        """
        with tempfile.TemporaryDirectory(prefix="teho-compare-") as name:
            folder = Path(name)
            began_s = time.monotonic()
            started = self._start(placement, folder)
            spool = spool_of(str(started.pid))
            is_enough = Enough(spool, self._window_s)
            why_ended = EARLY
            try:
                while (code := started.poll()) is None and why_ended == EARLY:
                    time.sleep(POLL_S)
                    if is_enough():
                        why_ended = ENOUGH
                    elif time.monotonic() - began_s >= limit_s:
                        why_ended = OVER
            finally:
                if started.poll() is None:
                    started.end_marked(mark_of(spool), _SEAL_S)
                    self._excuse(started.pid, why_ended)
            return self._recorded(started.pid, folder, code)

    def _start(self, placement: Placement, folder: Path) -> Started:
        tags = {**self._tags, "variant": placement.name}
        told = [word for key, value in tags.items() for word in ("--tag", f"{key}={value}")]
        environment = placement.environment(self._environment)
        environment.pop(RECORDED, None)
        environment |= {"TEHO_PROBE_STEPS": "1", "TEHO_HOME": str(self._home)}
        cores = os.sched_getaffinity(0)
        if not cores.issubset(placement.cores):
            environment[RECORDER_CORES] = ",".join(map(str, sorted(cores)))
        own = [sys.executable, "-m", "teho", "run", "--alone", "--quiet", "--keep-output"]
        return Started(
            [*own, *told, "--", *self._argv(placement)],
            environment,
            errors=folder / "stderr",
            cores=placement.cores,
        )

    def _excuse(self, pid: int, why: str) -> None:
        """Write into the recording that its program was ended on purpose."""
        found = self._recording(pid)
        directory, run = found or (None, None)
        if directory and run and run.end:
            end = msgspec.structs.replace(run.end, on_purpose=why)
            # What nodes and tasks say of themselves is in files of their own.
            own = msgspec.structs.replace(run, end=end, nodes=(), tasks=())
            replace_file(run_file(directory), msgspec.json.encode(own))

    def _recorded(self, pid: int, folder: Path, code: int | None) -> Recorded:
        last = tail_of(folder / "stderr").splitlines()[-1:]
        found = self._recording(pid)
        if found is None:
            said = "".join(last).removeprefix("teho: ").strip()
            raise InputError(
                said or "nothing was recorded", "a program that starts, and is recorded",
                "try it with `teho run -- COMMAND`",
            )  # fmt: skip
        directory, run = found
        sample = sample_of(run, directory, self._window_s)
        if code:
            why = ended_words(code) + "".join(f": {line.strip()}" for line in last)
            return Recorded(msgspec.structs.replace(sample, why=why))
        return Recorded(sample, printed_by(directory, is_whole=sample.is_whole))

    def _recording(self, pid: int) -> tuple[Path, Run] | None:
        """Return the newest recording that this process supervised."""
        runs = sorted(runs_directory(self._home).glob("[0-9]*"), reverse=True)
        for directory in runs[:_RECENT]:
            with contextlib.suppress(RecordingError):  # another one's
                run = read_run(directory)
                if run.supervisor_pid == pid and run.tags.get("compare") == self._tags["compare"]:
                    return directory, run
        return None
