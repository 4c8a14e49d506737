"""From readings to rows: differences, means, maxima, and fewer rows as a run grows long."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from teho.model.device import Readings
from teho.model.metric import METRICS_BY_NAME
from teho.model.missing import Missing
from teho.model.run import Absence
from teho.store.schema import max_column

__all__ = ["Sampler", "samples_per_row"]

NODE = "node"
"""Device id of the host's own rows."""

# 20 MB a node at 1.3 bytes a value (the design's bounds), with a quarter left over for
# the live part that is not compact yet.
_VALUES_PER_NODE = 11_500_000
# A quarter of an hour at full detail, then half as much with each doubling: three days are
# 7,400 rows a device, one row in two minutes at the end.
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


_LATE_SAMPLES = 3
"""On a machine that is always too slow, rows come nevertheless."""

# Powers of two: such numbers end in zero bits, which cost nothing on disk.
_TIME_STEP_S = 1 / 1024
_COUNTER_STEP = 1 / 64
"""Of counters that are no whole numbers: J and s. Totals stay exact to this."""


def _on_grid(value: float, step: float) -> float:
    return round(value / step) * step


def _kept(value: float) -> float:
    """Round a reading to what it can mean: a tenth, or three digits where it is large."""
    return round(value, 1) if abs(value) < 10_000 else float(f"{value:.3g}")


class _Mean:
    """Mean and maximum of a gauge over the sub-samples of one row."""

    __slots__ = ("count", "largest", "total")

    def __init__(self, value: float) -> None:
        self.total, self.count, self.largest = value, 1, value

    def add(self, value: float) -> None:
        self.total += value
        self.count += 1
        self.largest = max(self.largest, value)


class Sampler:
    """Turns the readings of all sources into rows of the recording."""

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
        self._means: dict[tuple[str, str], _Mean] = {}
        self._cores: list[float] = []
        self._cores_count = 0
        self._totals: dict[tuple[str, str], float] = {}
        self._raw: dict[tuple[str, str], float] = {}
        self._devices: dict[str, None] = {}
        self._values_per_row = 1
        self.absences: dict[tuple[str, str], Absence] = {}
        """What could not be read, by device and metric: the newest reason."""
        self.absences_changed = False

    def begin(self, readings: Readings, elapsed_s: float) -> None:
        """Take the first readings: where counters start. They make no row yet."""
        self._take(readings, elapsed_s, baseline=True)
        self._row_began_s = elapsed_s

    def add(
        self, readings: Readings, elapsed_s: float, took_s: float = 0.0
    ) -> list[dict[str, Any]]:
        """Take one sample, and return the rows that it completes (often none, or all devices').

        Args:
            readings: of all sources.
            elapsed_s: when they began to be read.
            took_s: how long that took. Where somebody held us up meanwhile, nobody knows when
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
        rows = {device: self._row(device, elapsed_s) for device in self._devices}
        for (device, name), mean in self._means.items():
            row, integer = rows[device], METRICS_BY_NAME[name].integer
            value = mean.total / mean.count
            row[name] = round(value) if integer else _kept(value)
            if self._samples > 1:
                largest = mean.largest
                row[max_column(name)] = round(largest) if integer else _kept(largest)
        for (device, name), total in self._totals.items():
            integer = METRICS_BY_NAME[name].integer
            rows[device][name] = round(total) if integer else _on_grid(total, _COUNTER_STEP)
        if self._cores_count:
            rows[NODE]["core_busy_percent"] = [
                min(100, round(total / self._cores_count)) for total in self._cores
            ]
        self._values_per_row = sum(map(len, rows.values())) + len(self._cores)
        self._means.clear()
        self._cores, self._cores_count, self._samples = [], 0, 0
        self._row_began_s = elapsed_s
        self._rows_written += 1
        return list(rows.values())

    def _row(self, device: str, elapsed_s: float) -> dict[str, Any]:
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
            "kind": "node" if device == NODE else "gpu",
            "device": device,
        }

    def _take(self, readings: Readings, elapsed_s: float, *, baseline: bool) -> None:
        for device, values in readings.items():
            self._devices.setdefault(device)
            for name, value in values.items():
                key = (device, name)
                if isinstance(value, Missing):
                    self._note_absence(key, value, elapsed_s)
                elif isinstance(value, list):
                    if not baseline:
                        self._add_cores(value)
                elif METRICS_BY_NAME[name].kind == "counter":
                    self._count(key, value)
                elif not baseline:
                    mean = self._means.get(key)
                    if mean is None:
                        self._means[key] = _Mean(value)
                    else:
                        mean.add(value)

    def _add_cores(self, values: Iterable[float]) -> None:
        values = list(values)
        if len(self._cores) != len(values):
            self._cores, self._cores_count = values, 1
            return
        self._cores = [total + value for total, value in zip(self._cores, values, strict=True)]
        self._cores_count += 1

    def _count(self, key: tuple[str, str], value: float) -> None:
        """Add up a counter since the recording began, over resets of the counter itself."""
        before = self._raw.get(key)
        self._raw[key] = value
        if before is None:
            # The program's own counters begin with the program, the others long before it.
            self._totals.setdefault(key, value if key[1].startswith("job_") else 0.0)
        else:
            # A counter that is smaller than before began anew (driver reload, wrap): what it
            # shows now is what is known to have been added.
            self._totals[key] += value - before if value >= before else value

    def _note_absence(self, key: tuple[str, str], missing: Missing, elapsed_s: float) -> None:
        known = self.absences.get(key)
        if known is None or known.missing != missing:
            self.absences[key] = Absence(
                device=key[0], metric=key[1], missing=missing, since_s=round(elapsed_s, 3)
            )
            self.absences_changed = True
