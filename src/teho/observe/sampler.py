"""From readings to rows: differences, means, maxima, and fewer rows as a run grows long."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from teho.model.device import Readings
from teho.model.metric import METRICS
from teho.model.missing import Missing
from teho.model.run import Absence
from teho.store.schema import max_column

__all__ = ["SignalSampler", "samples_per_row"]

NODE = "node"
"""Device id of the host's own rows."""

# 20 MB a node at 1.3 bytes a value (the design's bounds), with a quarter left over for
# the live part that is not compact yet.
_VALUES_PER_NODE = 11_500_000
# A quarter of an hour at full detail, then half as much with each doubling: three days are
# 7,300 rows a device, one row in four minutes at the end.
_ROWS_PER_TIER = 900
_TIERS = 20


def samples_per_row(rows_written: int, values_per_row: int) -> int:
    """Return how many samples the next row takes together: 1, 2, 4, … as rows add up.

    The recording's size is bounded whatever the job's length, and without knowing it:
    a run that ends early keeps every sample.

    Args:
        rows_written: rows so far (of one device; all devices get theirs together).
        values_per_row: values that all devices of this node put into one round of rows.
    """
    tier = max(60, min(_ROWS_PER_TIER, _VALUES_PER_NODE // (_TIERS * max(1, values_per_row))))
    return 1 << min(rows_written // tier, _TIERS)


_COUNTERS = frozenset(metric.name for metric in METRICS if metric.kind == "counter")
_INTEGERS = frozenset(metric.name for metric in METRICS if metric.integer)

_LATE_SAMPLES = 3
"""On a machine that is always too slow, rows come nevertheless."""

# Powers of two: such numbers end in zero bits, which cost nothing on disk.
_TIME_STEP_S = 1 / 1024
_COUNTER_STEP = 1 / 64
"""Of counters that are not whole numbers: J and s. Totals stay exact to this."""
# Half of the step is at most one part in 1,000.
_KEPT_BITS = 10


def _on_grid(value: float, step: float) -> float:
    return round(value / step) * step


def _kept(name: str, value: float) -> float:
    """Round a reading to what it can mean: a tenth, or one part in 1,000 where it is large."""
    if name in _INTEGERS:
        return round(value)
    if -10_000 < value < 10_000:
        # The same as round(value, 1), which goes by way of text and takes five times as long.
        return round(value * 10) / 10
    whole = round(value)
    step = 1 << (whole.bit_length() - _KEPT_BITS)
    return float((whole + step // 2) // step * step)


class _Device:
    """One device's next row."""

    __slots__ = ("gauges", "missing", "raw", "totals")

    def __init__(self) -> None:
        self.gauges: dict[str, list[float]] = {}
        """The samples taken since its last row."""
        self.totals: dict[str, float] = {}
        """What counters have come to since the recording began."""
        self.raw: dict[str, float] = {}
        """What the counters themselves showed last."""
        self.missing: dict[str, Missing] = {}
        """Why a metric could not be read, the last time that it could not."""

    def count(self, name: str, value: float) -> None:
        """Add up a counter since the recording began, over resets of the counter itself."""
        before = self.raw.get(name)
        self.raw[name] = value
        if before is None:
            # The program's own counters begin with the program, the others long before it.
            self.totals.setdefault(name, value if name.startswith("job_") else 0.0)
        else:
            # A counter that is smaller than before began again (driver reload, wrap): what it
            # shows now is what is known to have been added.
            self.totals[name] += value - before if value >= before else value

    def complete(self, row: dict[str, Any], samples: int) -> None:
        """Put all values into a row of so many samples, and begin the next one."""
        for name, values in self.gauges.items():
            if samples == 1:
                row[name] = _kept(name, values[0])
            else:
                row[name] = _kept(name, sum(values) / len(values))
                row[max_column(name)] = _kept(name, max(values))
        for name, total in self.totals.items():
            row[name] = round(total) if name in _INTEGERS else _on_grid(total, _COUNTER_STEP)
        self.gauges.clear()


class SignalSampler:
    """RepeatedRuns the readings of all sources into rows of the recording."""

    def __init__(self, node: str, started_at: datetime, period_s: float) -> None:
        """Start at the recorder's zero.

        Args:
            node: host name, written into each row.
            started_at: UTC time of `elapsed_s` 0.
            period_s: time between two samples.
        """
        self._node = node
        self._started_at = started_at
        self._period_s = period_s
        self._rows_written = 0
        self._samples = 0
        self._late_samples = 0
        self._row_began_s: float | None = None
        self._cores: list[float] = []
        self._cores_count = 0
        self._devices: dict[str, _Device] = {}
        self._values_per_row = 1
        self.absences: dict[tuple[str, str], Absence] = {}
        """What could not be read, by device and metric: the newest reason."""
        self.absences_changed = False

    def begin(self, readings: Readings, elapsed_s: float) -> None:
        """Take the first readings: where counters start. They make no row yet."""
        self._take(readings, elapsed_s, baseline=True)
        self._row_began_s = elapsed_s

    def begin_anew(self, readings: Readings, elapsed_s: float) -> None:
        """Take the first readings of sources that were closed and opened again.

        Some count from their opening on. One that shows less than before was not reset, and what
        it shows was not added.
        """
        for id_, device in self._devices.items():
            for name, value in readings.get(id_, {}).items():
                if isinstance(value, (int, float)) and value < device.raw.get(name, -math.inf):
                    device.raw[name] = value
        self._take(readings, elapsed_s, baseline=True)

    def add(
        self, readings: Readings, elapsed_s: float, took_s: float = 0.0
    ) -> list[dict[str, Any]]:
        """Take one sample, and return the rows that it completes (often none, or all devices').

        Args:
            readings: of all sources.
            elapsed_s: when they began to be read.
            took_s: how long that took. If somebody held us up meanwhile, nobody knows when
                a counter was read, and its rate could be anything: the next sample ends the row.
        """
        self._take(readings, elapsed_s, baseline=False)
        self._samples += 1
        self._late_samples = self._late_samples + 1 if took_s > self._period_s else 0
        if 0 < self._late_samples <= _LATE_SAMPLES:
            return []
        if self._samples < samples_per_row(self._rows_written, self._values_per_row):
            return []
        return self.finish(elapsed_s)

    def finish(self, elapsed_s: float) -> list[dict[str, Any]]:
        """Return the rows of the samples taken since the last rows, if there are any."""
        if self._samples == 0 or self._row_began_s is None:
            return []
        span = self._span(elapsed_s)
        rows = {}
        for id_, device in self._devices.items():
            rows[id_] = span | {"kind": "node" if id_ == NODE else "gpu", "device": id_}
            device.complete(rows[id_], self._samples)
        if self._cores_count:
            rows[NODE]["core_busy_percent"] = [
                min(100, round(total / self._cores_count)) for total in self._cores
            ]
        self._values_per_row = sum(map(len, rows.values())) + len(self._cores)
        self._cores, self._cores_count, self._samples = [], 0, 0
        self._row_began_s = elapsed_s
        self._rows_written += 1
        return list(rows.values())

    def _span(self, elapsed_s: float) -> dict[str, Any]:
        """Return what the rows of all devices have in common that end now."""
        elapsed_s = _on_grid(elapsed_s, _TIME_STEP_S)
        began = elapsed_s
        if self._row_began_s is not None:
            began = _on_grid(self._row_began_s, _TIME_STEP_S)
        # After a stop (SIGSTOP, a suspended laptop) the readings speak for the last
        # samples only; the gap stays a gap.
        span = min(elapsed_s - began, 2 * self._period_s * self._samples)
        return {
            "elapsed_s": elapsed_s,
            "span_s": max(span, 0.0),
            "time": self._started_at + timedelta(seconds=elapsed_s),
            "node": self._node,
        }

    def _take(self, readings: Readings, elapsed_s: float, *, baseline: bool) -> None:
        # Some 400 values go through here in each second: as few steps for each as can be.
        for id_, values in readings.items():
            device = self._devices.get(id_)
            if device is None:
                device = self._devices[id_] = _Device()
            gauges = device.gauges
            for name, value in values.items():
                if isinstance(value, (int, float)):
                    if name in _COUNTERS:
                        device.count(name, value)
                    elif baseline:
                        continue
                    elif name in gauges:
                        gauges[name].append(value)
                    else:
                        gauges[name] = [value]
                elif isinstance(value, list):
                    if not baseline:
                        self._add_cores(value)
                else:
                    known = device.missing.get(name)
                    if known is not value and known != value:
                        device.missing[name] = value
                        self._note_absence(id_, name, value, elapsed_s)

    def _add_cores(self, values: Iterable[float]) -> None:
        values = list(values)
        if len(self._cores) != len(values):
            self._cores, self._cores_count = values, 1
            return
        self._cores = [total + value for total, value in zip(self._cores, values, strict=True)]
        self._cores_count += 1

    def _note_absence(self, device: str, name: str, missing: Missing, elapsed_s: float) -> None:
        self.absences[device, name] = Absence(
            device=device, metric=name, missing=missing, since_s=round(elapsed_s, 3)
        )
        self.absences_changed = True
