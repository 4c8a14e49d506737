"""DCGM's figures from `dcgmi dmon`, a child process that prints a row per second for each GPU.

`dcgmi` asks the host engine that the administrator started. Its output is read without waiting. It
has its own session, so that Ctrl-C does not end it before the program. If the recorder is killed,
the pipe breaks and `dcgmi` ends.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from statistics import fmean

from teho.devices.dcgm.fields import (
    BLANK,
    FIELDS,
    METRICS,
    ONE_PASS,
    WATCHED,
    Entity,
    Field,
    value_of,
)
from teho.errors import DeviceError
from teho.model.device import Reading
from teho.model.missing import Missing, Reason
from teho.patterns import lazy_pattern
from teho.process.child import spawn_with_pipe, wait_for_exit

__all__ = ["DcgmMonitor"]

_ASK_S = 2.0
"""Longest time that the recorder's start waits for the host engine's list of GPUs."""
_SILENT_S = 10.0
"""Rows come every second. A GPU's first rows are N/A until the hardware has counted."""
_END_S = 1.0

_CELLS = lazy_pattern(r"\| *(\d*) *\|([^|]*)\|")
_UUID = lazy_pattern(r"Device UUID: *(\S+)")
_GPU = lazy_pattern(r"GPU (GPU-\S+) \(EntityID: (\d+)\)")
_INSTANCE = lazy_pattern(r"-> I \d+/(\d+) *\| *GPU Instance \(EntityID: (\d+)\)")
_ROW = lazy_pattern(r"\s*(GPU|GPU-I) (\d+)\s+(\S.*)")
_TWO_PASSES = "single pass"
"""Words of DCGM_ST_PROFILING_MULTI_PASS: more fields than the hardware counts at once."""
_NOT_REQUESTED = Missing(
    Reason.UNSUPPORTED,
    "Teho does not request this metric from `dcgmi dmon`: many releases of DCGM do not know "
    "this metric",
)
_NO_ROW = Missing(Reason.FAILED, "`dcgmi dmon` prints no row for this GPU")
_NOT_TOGETHER = Missing(
    Reason.UNSUPPORTED,
    "on this GPU, DCGM cannot measure this metric together with the other metrics",
)

_Row = dict[str, Reading]


class DcgmMonitor:
    """A `dcgmi dmon` that runs as long as the recorder.

    Args:
        wanted: the GPUs and MIG instances to watch.
        environment: the recorder's, with `PATH`.

    Raises:
        DeviceError: `dcgmi` is not installed, no host engine answers, or it does not know the GPUs.
    """

    notes: tuple[str, ...] = (
        (
            "the activity of multiprocessors and pipes is from DCGM's host engine, read with "
            "`dcgmi dmon`"
        ),
    )

    def __init__(self, wanted: Collection[Entity], environment: Mapping[str, str]) -> None:
        program = shutil.which("dcgmi", path=environment.get("PATH", ""))
        if program is None:
            raise DeviceError("`dcgmi` is not on the PATH")
        self._program = program
        self._environment = dict(environment)
        self._names = dict(self._named(frozenset(wanted)))
        """DCGM's name of each entity, at the beginning of its rows -> the entity."""
        if not self._names:
            raise DeviceError("DCGM's host engine does not know the UUIDs of the GPUs of this node")
        self._pid, self._pipe = 0, -1
        self._start(WATCHED)

    def _named(self, wanted: frozenset[Entity]) -> Iterator[tuple[str, Entity]]:
        number = ""
        for line in self._ask("discovery", "-l").splitlines():
            cells = _CELLS.match(line)
            number = (cells and cells[1]) or number
            uuid = cells and _UUID.search(cells[2])
            if uuid and Entity(uuid[1]) in wanted:
                yield f"GPU {number}", Entity(uuid[1])
        if all(entity.instance is None for entity in wanted):
            return
        gpu = ""
        for line in self._ask("discovery", "-c").splitlines():
            if found := _GPU.search(line):
                gpu = found[1]
            elif found := _INSTANCE.search(line):
                entity = Entity(gpu, int(found[1]))
                if entity in wanted:
                    yield f"GPU-I {found[2]}", entity

    def _ask(self, *arguments: str) -> str:
        """Run `dcgmi` once.

        Raises:
            DeviceError: it failed, or did not answer in time.
        """
        words = " ".join(("dcgmi", *arguments))
        try:
            done = subprocess.run(
                [self._program, *arguments],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                timeout=_ASK_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise DeviceError(f"`{words}` did not answer within {_ASK_S:.0f} s") from None
        except OSError as error:
            raise DeviceError(f"`{words}`: {error.strerror}") from None
        output = done.stdout.decode(errors="replace")
        if done.returncode:
            raise DeviceError(f"`{words}` fails: {_last_line(output) or done.returncode}")
        return output

    def _start(self, fields: Sequence[Field]) -> None:
        """Start `dcgmi dmon`.

        Raises:
            DeviceError: the process cannot be started.
        """
        self._fields = fields
        self._left_out: _Row = {
            field.metric: _NOT_TOGETHER if field in WATCHED else _NOT_REQUESTED
            for field in FIELDS
            if field not in fields
        }
        self._unread: dict[str, list[_Row]] = {}
        self._newest: dict[str, _Row] = {}
        self._rest = b""
        self._complaint = ""
        self._began_s = self._latest_row_s = time.monotonic()
        # Old and new releases accept `i:` for an instance.
        places = (name.replace("GPU-I ", "i:").replace("GPU ", "") for name in self._names)
        numbers = ",".join(str(field.number) for field in fields)
        command = [self._program, "dmon", "-e", numbers, "-i", ",".join(places), "-d", "1000"]
        try:
            self._pid, self._pipe = spawn_with_pipe(command, self._environment)
        except (OSError, NotImplementedError) as error:
            raise DeviceError(f"`dcgmi dmon` cannot be started: {error}") from None
        os.set_blocking(self._pipe, False)

    def read(self) -> dict[Entity, dict[str, Reading]]:
        """Return the means of the rows since the last call; without new rows, the newest row."""
        self._receive()
        if self._pipe < 0:
            return self._all(f"`dcgmi dmon` has ended: {self._complaint or 'it printed nothing'}")
        if time.monotonic() - self._latest_row_s > _SILENT_S:
            return self._all(f"`dcgmi dmon` has printed no row for more than {_SILENT_S:.0f} s")
        settling = time.monotonic() - self._began_s < _SILENT_S
        none_yet: _Row = {} if settling else dict.fromkeys(METRICS, _NO_ROW)
        known = dict.fromkeys(self._names.values(), none_yet)
        for name, newest in self._newest.items():
            rows = self._unread.pop(name, [newest])
            values = {field.metric: _mean(rows, field.metric) for field in self._fields}
            if settling:
                values = {metric: value for metric, value in values.items() if value != BLANK}
            known[self._names[name]] = self._left_out | values
        return known

    def _all(self, why: str) -> dict[Entity, dict[str, Reading]]:
        missing: dict[str, Reading] = dict.fromkeys(METRICS, Missing(Reason.FAILED, why))
        return dict.fromkeys(self._names.values(), missing)

    def _receive(self) -> None:
        """Read all output that has come."""
        while self._pipe >= 0:
            try:
                data = os.read(self._pipe, 1 << 16)
            except BlockingIOError:
                return
            if not data:
                self.close()
                if _TWO_PASSES in self._complaint and self._fields is WATCHED:
                    with contextlib.suppress(DeviceError):
                        self._start(ONE_PASS)
                return
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                self._take(line.decode(errors="replace"))

    def _take(self, line: str) -> None:
        row = _ROW.fullmatch(line)
        if row is None:
            # Headings are repeated. Any other line is a complaint.
            if line.strip() and not line.lstrip().startswith(("#", "ID", "Id")):
                self._complaint = line.strip()[:200]
            return
        texts = row[3].split()
        name = f"{row[1]} {row[2]}"
        if name not in self._names:
            return
        self._latest_row_s = time.monotonic()
        if len(texts) != len(self._fields):
            # It is not known which column is missing.
            what = (
                f"`dcgmi dmon` prints {len(texts)} columns, but Teho requested {len(self._fields)}"
            )
            odd = Missing(Reason.FAILED, what)
            values: _Row = dict.fromkeys(METRICS, odd)
        else:
            pairs = zip(self._fields, texts, strict=True)
            values = {field.metric: value_of(text, field) for field, text in pairs}
        self._newest[name] = values
        self._unread.setdefault(name, []).append(values)

    def close(self) -> None:
        """End the process; can be called twice."""
        if self._pipe < 0:
            return
        os.close(self._pipe)
        self._pipe = -1
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        # A process that hangs in the driver cannot be ended. Then do not wait.
        with contextlib.suppress(ChildProcessError):
            wait_for_exit(self._pid, time.monotonic() + _END_S)


def _mean(rows: Sequence[_Row], metric: str) -> Reading:
    """Return the mean of the rows with a figure; if there are none, why the last one has none."""
    values = [row[metric] for row in rows]
    figures = [value for value in values if isinstance(value, (int, float))]
    return fmean(figures) if figures else values[-1]


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else ""
