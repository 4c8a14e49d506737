"""Records a run of a program on one placement, and ends it early once its pace is known."""

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
from teho.experiment.started import Started, ended_words, tail_of, with_last_message
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
"""Time that the recorder has to finish after the program has ended."""
_RECENT = 100
"""Number of recordings among which this one is searched."""
OVER = "out of time"
EARLY = "ended with its comparison"
"""Why a program was ended, for `End.on_purpose`; or `ENOUGH`."""


class Recorded(NamedTuple):
    """The figures of one run, and its output."""

    sample: Sample
    printed: Printed | None = None
    """None if the run failed."""


class Runner:
    """A command that is recorded again and again, each time on other cores and GPUs.

    Args:
        argv: returns the command for a placement.
        environment: for the command, without the variables of the placement.
        home: folder of the recordings.
        tags: of all recordings.
        window_s: how long a steady pace is measured; None: each run goes to its end.
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
        """Run the command once.

        Args:
            placement: cores and GPUs that it may use.
            limit_s: time after which it is ended even if its pace is not known.

        Raises:
            InputError: the command does not start, or is not recorded.
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
                    self._note_end(started.pid, why_ended)
            return self._recorded(started.pid, folder, code)

    def _start(self, placement: Placement, folder: Path) -> Started:
        tags = {**self._tags, "variant": placement.name}
        tag_words = [word for key, value in tags.items() for word in ("--tag", f"{key}={value}")]
        environment = placement.environment(self._environment)
        environment.pop(RECORDED, None)
        environment |= {"TEHO_PROBE_STEPS": "1", "TEHO_HOME": str(self._home)}
        cores = os.sched_getaffinity(0)
        if not cores.issubset(placement.cores):
            environment[RECORDER_CORES] = ",".join(map(str, sorted(cores)))
        teho_run = [sys.executable, "-m", "teho", "run", "--alone", "--quiet", "--keep-output"]
        return Started(
            [*teho_run, *tag_words, "--", *self._argv(placement)],
            environment,
            errors=folder / "stderr",
            cores=placement.cores,
        )

    def _note_end(self, pid: int, why: str) -> None:
        """Write into the recording why its program was ended on purpose."""
        directory, run = self._recording(pid) or (None, None)
        if directory and run and run.end:
            end = msgspec.structs.replace(run.end, on_purpose=why)
            # Nodes and tasks have separate files.
            own = msgspec.structs.replace(run, end=end, nodes=(), tasks=())
            replace_file(run_file(directory), msgspec.json.encode(own))

    def _recorded(self, pid: int, folder: Path, code: int | None) -> Recorded:
        last = "".join(tail_of(folder / "stderr").splitlines()[-1:]).strip()
        found = self._recording(pid)
        if found is None:
            raise InputError(
                last.removeprefix("teho: ") or "the program was not recorded",
                "a program that starts and that `teho run` can record",
                "try the program with `teho run -- COMMAND`",
            )
        directory, run = found
        sample = sample_of(run, directory, self._window_s)
        if code:
            why = with_last_message(ended_words(code), last)
            return Recorded(msgspec.structs.replace(sample, why=why))
        return Recorded(sample, printed_by(directory, is_whole=sample.is_whole))

    def _recording(self, pid: int) -> tuple[Path, Run] | None:
        """Return the newest recording whose supervisor is this process."""
        runs = sorted(runs_directory(self._home).glob("[0-9]*"), reverse=True)
        for directory in runs[:_RECENT]:
            with contextlib.suppress(RecordingError):  # another one's
                run = read_run(directory)
                if run.supervisor_pid == pid and run.tags.get("compare") == self._tags["compare"]:
                    return directory, run
        return None
