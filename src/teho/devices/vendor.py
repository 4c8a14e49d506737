"""What Teho needs to know about a vendor of GPUs: one row, in the vendor's folder."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from teho.model.device import Device, DeviceSource, Reading

__all__ = ["EnergyCounters", "Vendor", "loading"]


class EnergyCounters(Protocol):
    """The energy counters of a vendor's GPUs, in J. They are quick to open and read."""

    devices: tuple[Device, ...]
    notes: tuple[str, ...]

    def read(self) -> list[Reading]:
        """Return one reading for each of `devices`."""

    def close(self) -> None:
        """Release the devices; can be called twice."""


class Vendor(NamedTuple):
    """A vendor of GPUs. Loading this row loads none of the vendor's other files."""

    name: str
    """Such as `nvidia`: the vendor of its devices, and the name of its folder."""
    open_source: Callable[[Mapping[str, str], Path], DeviceSource]
    """Opens the job's GPUs, from the environment and the root of the file system; raises
    `DeviceError` if there are none."""
    all_gpus: Callable[[Path], Iterable[Device]]
    """Returns all GPUs of this node, including other jobs' GPUs."""
    versions: Callable[[Path], Iterable[tuple[str, str]]]
    """Returns names and versions of the driver and its libraries; an empty version is left out."""
    open_counters: Callable[[Mapping[str, str], Path], EnergyCounters] | None = None
    """Opens only the energy counters; None: the source reads them with all other metrics."""
    visible_variables: tuple[str, ...] = ()
    """Variables that select the GPUs which the vendor's runtime shows to a program. The first one
    takes the ids of devices, and -1 for none."""
    device_files: str = ""
    """Pattern for the device files of its GPUs in `/dev`."""
    short_counters: frozenset[str] = frozenset()
    """Architectures whose energy counter starts again from 0 every few minutes."""
    index_order: str = ""
    """Setting with which the runtime numbers GPUs as Teho does, such as `NAME=value`; empty if it
    always does."""
    cache_variables: tuple[str, ...] = ()
    """Variables with folders in which the vendor's libraries keep compiled code."""
    power_windows_s: tuple[tuple[str, float], ...] = ()
    """Beginning of an architecture, and the time over which it averages power readings, in s."""
    is_power_of_module: bool = True
    """Whether the power covers the whole module if the energy counter does."""
    order: int = 100
    """Vendors are asked and listed in this order."""


def loading(module: str, name: str) -> Callable[..., Any]:
    """Return a function that loads a module when it is called, and calls a function of it."""

    def call(*arguments: Any) -> Any:
        return getattr(import_module(module), name)(*arguments)

    return call
