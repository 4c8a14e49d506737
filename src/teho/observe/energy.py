"""Measures the energy of a part of a program: `with teho.energy() as e: …; e.energy_j`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from copy import copy
from time import monotonic
from types import TracebackType
from typing import ParamSpec, Protocol, TypeVar, cast, final

from teho.devices.meter import Meter, added, drawn
from teho.errors import DeviceError, InputError
from teho.model.device import Device, Reading
from teho.model.missing import Missing, Reason
from teho.model.summary import Figure

__all__ = ["Energy", "EnergyReading", "MeasuredEnergy"]

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


@final
class EnergyReading:
    """The energy of the GPUs in a span of time. The figures are computed when they are read.

    Attributes:
        elapsed_s: the length of the span.
    """

    def __init__(
        self,
        elapsed_s: float,
        devices: Sequence[Device],
        before: Sequence[Reading],
        after: Sequence[Reading],
        lacking: Missing | None,
    ) -> None:
        self.elapsed_s = elapsed_s
        self._devices = devices
        self._before = before
        self._after = after
        self._lacking = lacking

    @functools.cached_property
    def by_device(self) -> dict[str, Figure]:
        """Energy of each GPU in J, by its UUID."""
        figures = drawn(self._devices, self._before, self._after, self.elapsed_s)
        return {device.id: figure for device, figure in zip(self._devices, figures, strict=True)}

    @property
    def energy_j(self) -> Figure:
        """Energy of all GPUs that this process may use, including idle time, or a `Missing`."""
        return self._lacking or added(self._devices, list(self.by_device.values()))

    @property
    def power_w(self) -> Figure:
        """Mean power of all GPUs that this process may use."""
        energy_j = self.energy_j
        if isinstance(energy_j, Missing):
            return energy_j
        if self.elapsed_s <= 0:
            return Missing(Reason.UNRECORDED, "no time has passed")
        return energy_j / self.elapsed_s


class MeasuredEnergy(Protocol[P, R_co]):
    """A function whose calls are measured."""

    energy: Energy | None
    """The energy of the last call."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function."""
        ...


@final
class Energy:
    """Measures the energy of this node's GPUs in a `with` block.

    Without a GPU or an energy counter, every energy is a `Missing` with the reason. No exception
    is raised.
    """

    def __init__(self) -> None:
        self._meter: Meter | None = None
        self._lacking = Missing(Reason.ABSENT)
        try:
            self._meter = Meter()
        except DeviceError as error:
            self._lacking = Missing(Reason.ABSENT, error.found)
        self._began_s: float | None = None
        self._before: list[Reading] = []
        self._last: EnergyReading | None = None

    def __enter__(self) -> Energy:
        self._last = None
        self._before = self._meter.read() if self._meter else []
        self._began_s = monotonic()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._last = self.read()

    def __call__(self, function: Callable[P, R]) -> MeasuredEnergy[P, R]:
        """Measure each call of a function. Its attribute `energy` is the last call's energy."""

        @functools.wraps(function)
        def measured(*args: P.args, **kwargs: P.kwargs) -> R:
            # Calls may overlap, so each has its own copy. The devices are opened only once.
            typed.energy = copy(self)
            with typed.energy:
                return function(*args, **kwargs)

        typed = cast("MeasuredEnergy[P, R]", measured)
        typed.energy = None
        return typed

    def read(self) -> EnergyReading:
        """Return the energy from the beginning of the block until now.

        Raises:
            InputError: the block has not begun.
        """
        if self._began_s is None:
            raise InputError(
                "teho.energy() has not started to measure",
                "`with teho.energy() as e:` around the code to measure",
            )
        if self._meter is None:
            return EnergyReading(monotonic() - self._began_s, (), (), (), self._lacking)
        after = self._meter.read()
        elapsed_s = monotonic() - self._began_s
        return EnergyReading(elapsed_s, self._meter.devices, self._before, after, None)

    @property
    def energy_j(self) -> Figure:
        """Energy of all GPUs that this process may use, in J; inside the block, up to now."""
        return self._reading.energy_j

    @property
    def power_w(self) -> Figure:
        """Mean power of all these GPUs, in W."""
        return self._reading.power_w

    @property
    def elapsed_s(self) -> float:
        """Length of the block."""
        return self._reading.elapsed_s

    @property
    def by_device(self) -> dict[str, Figure]:
        """Energy of each GPU in J, by its UUID."""
        return self._reading.by_device

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about the figures, for example what else a counter includes."""
        return self._meter.notes if self._meter else ()

    @property
    def _reading(self) -> EnergyReading:
        return self._last or self.read()
