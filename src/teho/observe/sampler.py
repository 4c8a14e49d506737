"""Makes rows from readings: differences, means and maxima, and fewer rows in a long run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from teho.model.device import Reading, Readings
from teho.model.metric import METRICS
from teho.model.missing import Missing
from teho.model.run import Absence
from teho.store.schema import max_column

__all__ = ["SignalSampler", "samples_per_row"]

NODE = "node"
"""Device id of the host's rows."""

# The design's limit is 20 MB a node, at 1.3 bytes a value. A quarter is reserved for the live
# part, which is not yet packed.
_VALUES_PER_NODE = 11_500_000
# A quarter of an hour at full detail, then half as many rows after each 900. Three days are 7,300
# rows a device, with one row in four minutes at the end.
_ROWS_PER_TIER = 900
_TIERS = 20


def samples_per_row(rows_written: int, values_per_row: int) -> int:
    """Return the number of samples in the next row: 1, 2, 4, … with the number of rows.

    This limits the size of a recording, although the length of the run is not known. A short run
    keeps every sample.

    Args:
        rows_written: number of rows so far of one device; all devices have the same number.
        values_per_row: number of values in one row of every device of this node.
    """
    tier = max(60, min(_ROWS_PER_TIER, _VALUES_PER_NODE // (_TIERS * max(1, values_per_row))))
    return 1 << min(rows_written // tier, _TIERS)


_COUNTERS = frozenset(metric.name for metric in METRICS if metric.kind == "counter")
_INTEGERS = frozenset(metric.name for metric in METRICS if metric.integer)

_LATE_SAMPLES = 3
"""After this number of late samples, a row is written: some machines are always too slow."""

_CUT_S = 10.0
"""The least time of a row that ends early."""
_CUTS, _CUT_SHARE = 8, 1 / 8
"""The largest number of rows that end early: `_CUTS`, and this share of all rows."""

# Multiples of a power of two end in zero bits, which need no space on disk.
_TIME_STEP_S = 1 / 1024
_COUNTER_STEP = 1 / 64
"""Step of counters that are not whole numbers (J and s). Totals are exact to this step."""
# Half of the step is at most one part in 1,000.
_KEPT_BITS = 10


def _on_grid(value: float, step: float) -> float:
    return round(value / step) * step


def _kept(name: str, value: float) -> float:
    """Round a reading to a tenth, or a large one to one part in 1,000."""
    if name in _INTEGERS:
        return round(value)
    if -10_000 < value < 10_000:
        # The same as round(value, 1), which converts to text and takes five times as long.
        return round(value * 10) / 10
    whole = round(value)
    step = 1 << (whole.bit_length() - _KEPT_BITS)
    return float((whole + step // 2) // step * step)


def _kept_total(name: str, total: float) -> float:
    return round(total) if name in _INTEGERS else _on_grid(total, _COUNTER_STEP)


class _Device:
    """The next row of one device."""

    __slots__ = ("gauges", "missing", "raw", "totals")

    def __init__(self) -> None:
        self.gauges: dict[str, list[float]] = {}
        """The samples since its last row."""
        self.totals: dict[str, float] = {}
        """Counter -> increase since the recording began."""
        self.raw: dict[str, float] = {}
        """Counter -> its last value."""
        self.missing: dict[str, Missing] = {}
        """Metric -> why it could not be read most recently."""

    def count(self, name: str, value: float) -> None:
        """Add the increase of a counter to its total. The counter may have been reset."""
        before = self.raw.get(name)
        self.raw[name] = value
        if before is None:
            # The program's counters begin with the program, the others long before it.
            self.totals.setdefault(name, value if name.startswith("job_") else 0.0)
        else:
            # A counter that is smaller than before was reset (driver reload, overflow). Its
            # present value is the increase since the reset.
            self.totals[name] += value - before if value >= before else value

    def complete(self, row: dict[str, Any], samples: int) -> None:
        """Add all values to a row of `samples` samples, and begin the next row."""
        for name, values in self.gauges.items():
            if samples == 1:
                row[name] = _kept(name, values[0])
            else:
                row[name] = _kept(name, sum(values) / len(values))
                row[max_column(name)] = _kept(name, max(values))
        for name, total in self.totals.items():
            row[name] = _kept_total(name, total)
        self.gauges.clear()


class SignalSampler:
    """Makes rows of the recording from the readings of all sources."""

    def __init__(self, node: str, started_at: datetime, period_s: float) -> None:
        """Prepare the first row.

        Args:
            node: host name, written into each row.
            started_at: UTC time at `elapsed_s` 0.
            period_s: time between two samples.
        """
        self._node = node
        self._started_at = started_at
        self._period_s = period_s
        self._rows_written = self._rows_cut = 0
        self._samples = 0
        self._late_samples = 0
        self._row_began_s: float | None = None
        self._cores: list[float] = []
        self._cores_count = 0
        self._devices: dict[str, _Device] = {}
        self._alone: dict[str, dict[str, Any]] = {}
        """Device -> values of its newest row, if this row has only the newest sample."""
        self._values_per_row = 1
        self.absences: dict[tuple[str, str], Absence] = {}
        """Device and metric -> the newest reason why it could not be read."""
        self.absences_changed = False

    def newest(self, readings: Readings) -> list[dict[str, Any]]:
        """Return a row for each device with only the newest sample, whatever the rows contain.

        Args:
            readings: that `add` got last.
        """
        return [self._alone.get(id_) or self._row(id_, values) for id_, values in readings.items()]

    def _row(self, id_: str, values: Mapping[str, Reading]) -> dict[str, Any]:
        """Return a row of one device with only the newest sample."""
        row: dict[str, Any] = {"kind": "node" if id_ == NODE else "gpu", "device": id_}
        totals = self._devices[id_].totals
        for name, value in values.items():
            if isinstance(value, list):
                row[name] = [min(100, round(share)) for share in value]
            elif isinstance(value, (int, float)):
                is_counter = name in _COUNTERS
                row[name] = _kept_total(name, totals[name]) if is_counter else _kept(name, value)
        return row

    def begin(self, readings: Readings, elapsed_s: float) -> None:
        """Take the first values of the counters. They are not a row."""
        self._take(readings, elapsed_s, baseline=True)
        self._row_began_s = elapsed_s

    def resume(self, readings: Readings, elapsed_s: float) -> None:
        """Take the first readings of sources that were closed and opened again.

        Some counters begin when their source is opened. If such a counter is now smaller than
        before, it was not reset, and its value is not an increase.
        """
        for id_, device in self._devices.items():
            for name, value in readings.get(id_, {}).items():
                if isinstance(value, (int, float)) and value < device.raw.get(name, -math.inf):
                    device.raw[name] = value
        self._take(readings, elapsed_s, baseline=True)

    def add(
        self, readings: Readings, elapsed_s: float, took_s: float = 0.0
    ) -> list[dict[str, Any]]:
        """Take one sample, and return the rows that it completes: none, or one for each device.

        Args:
            readings: of all sources.
            elapsed_s: when reading began.
            took_s: how long reading took. If it took too long, it is not known when a counter was
                read, and its rate would be wrong. The next sample then ends the row.
        """
        self._take(readings, elapsed_s, baseline=False)
        self._samples += 1
        self._late_samples = self._late_samples + 1 if took_s > self._period_s else 0
        if 0 < self._late_samples <= _LATE_SAMPLES:
            return []
        if self._samples < samples_per_row(self._rows_written, self._values_per_row):
            return []
        return self.finish(elapsed_s)

    def cut(self, elapsed_s: float) -> list[dict[str, Any]]:
        """Return the rows of the samples so far if they cover much time, so that a new row begins.

        A long run has minutes between two rows. If the run may be stuck, the rows show sooner that
        it uses nothing. Only a part of all rows ends early.

        Args:
            elapsed_s: time of the newest sample, which `add` got last.
        """
        is_long = self._samples * self._period_s >= _CUT_S
        most = _CUTS + _CUT_SHARE * self._rows_written
        if not is_long or self._late_samples or self._rows_cut >= most:
            return []
        self._rows_cut += 1
        return self.finish(elapsed_s)

    def finish(self, elapsed_s: float) -> list[dict[str, Any]]:
        """Return the rows of the samples since the last rows; empty without samples."""
        if self._samples == 0 or self._row_began_s is None:
            return []
        span = self._span(elapsed_s)
        rows: dict[str, dict[str, Any]] = {}
        for id_, device in self._devices.items():
            rows[id_] = {"kind": "node" if id_ == NODE else "gpu", "device": id_}
            device.complete(rows[id_], self._samples)
        if self._cores_count:
            rows[NODE]["core_busy_percent"] = [
                min(100, round(total / self._cores_count)) for total in self._cores
            ]
        self._values_per_row = sum(len(span) + len(row) for row in rows.values()) + len(self._cores)
        self._alone = rows if self._samples == 1 else {}
        self._cores, self._cores_count, self._samples = [], 0, 0
        self._row_began_s = elapsed_s
        self._rows_written += 1
        return [span | row for row in rows.values()]

    def _span(self, elapsed_s: float) -> dict[str, Any]:
        """Return the columns that the rows of all devices have in common."""
        elapsed_s = _on_grid(elapsed_s, _TIME_STEP_S)
        began = elapsed_s
        if self._row_began_s is not None:
            began = _on_grid(self._row_began_s, _TIME_STEP_S)
        # After a stop (SIGSTOP, a suspended laptop), the readings describe only the time of the
        # last samples. The gap stays without a row.
        span = min(elapsed_s - began, 2 * self._period_s * self._samples)
        return {
            "elapsed_s": elapsed_s,
            "span_s": max(span, 0.0),
            "time": self._started_at + timedelta(seconds=elapsed_s),
            "node": self._node,
        }

    def _take(self, readings: Readings, elapsed_s: float, *, baseline: bool) -> None:
        # This handles about 400 values a second, so each needs as few steps as possible.
        self._alone = {}
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
