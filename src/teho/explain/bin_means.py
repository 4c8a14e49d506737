"""The means per time bin of all metrics of a device, in little memory."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from teho.explain.block import five_digits
from teho.model.summary import Series
from teho.store.columns import floats, of_floats

__all__ = ["BinMeans", "mean_of_devices"]


class BinMeans(Mapping[str, Series]):
    """Metric -> its means per time bin.

    The series of 10,000 GPUs have 11 million values. As Python's numbers, they would need 32 bytes
    each, and would be copied from another process one by one. No rule reads most of the series.

    Args:
        series: metric -> its values (bins,); NaN: no recorded value.
    """

    __slots__ = ("_count", "_gaps", "_places", "_values")

    def __init__(self, series: Mapping[str, array[float]]) -> None:
        self._places = _places(tuple(series))
        self._values = array("d")
        for values in series.values():
            self._values.extend(values)
        self._count = len(self._values) // len(series) if series else 0
        # A sum with NaN is NaN.
        self._gaps = frozenset(name for name, own in series.items() if math.isnan(sum(own)))

    @property
    def every(self) -> pa.Array:
        """The values of all metrics (metrics * bins,), one metric after the other, not copied."""
        return of_floats(self._values)

    def __getitem__(self, metric: str) -> Series:
        first = self._places[metric] * self._count
        values = self._values[first : first + self._count].tolist()
        if metric in self._gaps:
            return [None if math.isnan(value) else value for value in values]
        return cast("Series", values)

    def get(self, metric: str, default: Any = None) -> Any:
        """Return the series of a metric, or the default."""
        return self[metric] if metric in self._places else default

    def __contains__(self, metric: object) -> bool:
        return metric in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


@lru_cache(64)
def _places(metrics: tuple[str, ...]) -> dict[str, int]:
    """Return the place of each metric: one object for all devices with the same metrics."""
    return {metric: place for place, metric in enumerate(metrics)}


def mean_of_devices(devices: Sequence[BinMeans]) -> dict[str, Series] | None:
    """Return the mean of some devices in each bin, by metric, to five digits.

    Returns:
        None if a value is missing, or if not all devices have the same metrics.
    """
    if any(list(one) != list(devices[0]) for one in devices):
        return None
    total = reduce(pc.add, (one.every for one in devices))
    if not pc.all(pc.is_finite(total)).as_py():
        return None
    means: list[Any] = floats(five_digits(pc.divide(total, float(len(devices))))).tolist()
    count = len(means) // max(1, len(devices[0]))
    return {
        metric: means[place * count : (place + 1) * count]
        for place, metric in enumerate(devices[0])
    }
