"""One recorded run of a program under one placement, ended early once its pace is known."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from teho.experiment.look import look_at
from teho.experiment.placement import Placement
from teho.experiment.sample import sample_of
from teho.experiment.started import Started, ended_words, tail_of
from teho.model.compared import Sample
from teho.model.missing import Missing, Reason
from teho.model.run import Run
from teho.observe.members import RECORDED
from teho.observe.spool import spool_of
from teho.store.layout import replace_file, run_file, runs_directory
from teho.store.probe import processes_in
from teho.store.read import read_run
from teho.units import format_duration

__all__ = ["Recorded", "Runner"]

_POLL_S = 0.2
_SEAL_S = 60.0
"""For which the recorder may go on once the program has ended."""
_OUTPUT_BYTES = 1 << 20
_RECENT = 100
"""So many recordings may have begun meanwhile."""
ENOUGH = "measured long enough"


class Recorded(NamedTuple):
    """What one run showed, and what it printed."""

    sample: Sample
    output: str | None = None
    """Of a run that came to its end; None where it was more than could be kept."""


class Runner:
    """A command that is recorded again and again, on other cores and GPUs each time.

    Args:
        argv: the command.
        environment: what it is started with, but for what the placement sets.
        home: where recordings go.
        tags: of all its recordings.
        window_s: how long a run is measured once it goes steadily; None: each runs to its end.
    """

    def __init__(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        home: Path,
        tags: Mapping[str, str],
        window_s: float | None,
    ) -> None:
        self._argv = list(argv)
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
            InputError: it does not start.
        """
        with tempfile.TemporaryDirectory(prefix="teho-compare-") as name:
            folder = Path(name)
            began_s = time.monotonic()
            started = self._start(placement, folder)
            mark = f"TEHO_PROBE={spool_of(str(started.pid))}"
            enough, over = False, False
            try:
                while (code := started.poll()) is None and not enough and not over:
                    time.sleep(_POLL_S)
                    over = time.monotonic() - began_s >= limit_s
                    enough = self._is_enough(started.pid)
            finally:
                if started.poll() is None:
                    started.end_marked(mark, _SEAL_S)
            return self._recorded(started.pid, folder, code, limit_s if over else None)

    def _start(self, placement: Placement, folder: Path) -> Started:
        tags = {**self._tags, "variant": placement.name}
        told = [word for key, value in tags.items() for word in ("--tag", f"{key}={value}")]
        environment = placement.environment(self._environment)
        environment.pop(RECORDED, None)
        environment |= {"TEHO_PROBE_STEPS": "1", "TEHO_HOME": str(self._home)}
        own = [sys.executable, "-m", "teho", "run", "--alone", "--quiet", *told, "--"]
        return Started(
            [*own, *self._argv],
            environment,
            output=folder / "stdout",
            errors=folder / "stderr",
            cores=placement.cores,
        )

    def _is_enough(self, pid: int) -> bool:
        if self._window_s is None:
            return False
        sight = look_at(processes_in(Path(spool_of(str(pid))), []), self._window_s)
        return bool(sight and sight.pace and sight.pace.is_whole)

    def _recorded(
        self, pid: int, folder: Path, code: int | None, limit_s: float | None
    ) -> Recorded:
        wrote = tail_of(folder / "stderr")
        found = self._recording(pid)
        if found is None:
            last = wrote.splitlines()[-1:] or ["nothing was recorded"]
            nothing = Missing(Reason.UNRECORDED, "there is no recording")
            why = last[0].removeprefix("teho: ").strip()
            return Recorded(
                Sample(run="", elapsed_s=0.0, why=why, energy_j=nothing, gpu_energy_j=nothing)
            )
        directory, run = found
        if code is None and run.end:
            ended = msgspec.structs.replace(run.end, on_purpose=ENOUGH if limit_s is None else "")
            run = msgspec.structs.replace(run, end=ended)
            own = msgspec.structs.replace(run, nodes=(), tasks=())
            replace_file(run_file(directory), msgspec.json.encode(own))
        sample = sample_of(run, directory, self._window_s)
        if code:
            last = wrote.splitlines()[-1:]
            why = ended_words(code) + "".join(f": {line.strip()}" for line in last)
            return Recorded(msgspec.structs.replace(sample, why=why))
        if limit_s is not None and sample.steps_per_s is None:
            why = f"it neither ended nor showed a steady pace within {format_duration(limit_s)}"
            return Recorded(msgspec.structs.replace(sample, why=why))
        output = folder / "stdout"
        is_kept = sample.is_whole and output.stat().st_size <= _OUTPUT_BYTES
        return Recorded(sample, output.read_text(errors="replace") if is_kept else None)

    def _recording(self, pid: int) -> tuple[Path, Run] | None:
        """Return the newest recording that this process supervised."""
        runs = sorted(runs_directory(self._home).glob("[0-9]*"), reverse=True)
        for directory in runs[:_RECENT]:
            if run_file(directory).exists():
                run = read_run(directory)
                if run.supervisor_pid == pid and run.tags.get("compare") == self._tags["compare"]:
                    return directory, run
        return None
