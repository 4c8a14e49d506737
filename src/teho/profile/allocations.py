"""The events `[memory]` of a trace as columns: what PyTorch allocated and freed, and when.

PyTorch writes them with `profile_memory=True`. A positive size is an allocation. A negative size
frees the memory with this address.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

from teho.profile.stream import Event, Number

__all__ = ["CPU", "Allocations", "device_of"]

_NAME = "[memory]"
CPU = 0
"""Number of the CPU among PyTorch's types of devices (`c10/core/DeviceType.h`)."""
_DEVICES = 256
"""PyTorch stores the number of a device in one byte, and -1 as the number of the CPU."""


class Allocations:
    """What one thread allocated and freed. A number that the trace does not have is -1."""

    def __init__(self) -> None:
        self.times = array("q")
        self.addresses = array("q")
        self.sizes = array("q")
        """In bytes; negative: the memory is freed."""
        self.totals = array("q")
        """What is allocated on the device after this event. On the CPU, it is only what the
        profiler has seen since the program began."""
        self.reserved = array("q")
        """What the allocator of PyTorch has taken from the device; 0 on the CPU."""
        self.devices = array("q")
        """Type and number of the device: see `device_of`."""

    def extend(self, events: Sequence[Event]) -> None:
        """Add events; those with another name, or without an address, are left out.

        Raises:
            ValueError, TypeError, OverflowError: a number of one of them cannot be read in this
                way. Then none is added.
        """
        meant = [(event.ts, event.args) for event in events if event.name == _NAME]
        # PyTorch 1.11 and older do not write the address.
        known = [(ts, one) for ts, one in meant if one is not None and one.address is not None]
        arguments = [one for _, one in known]
        # The checker is silenced: a number that is missing or a text raises what the docstring
        # says.
        times = array("q", [round(ts * 1000) for ts, _ in known])  # type: ignore[operator,arg-type]
        addresses = array("q", [int(one.address) for one in arguments])  # type: ignore[arg-type]
        sizes = array("q", [int(one.bytes) for one in arguments])  # type: ignore[arg-type]
        totals = _known(one.allocated for one in arguments)
        reserved = _known(one.reserved for one in arguments)
        devices = array("q", [_device(one.device_type, one.device_number) for one in arguments])
        self.times.extend(times)
        self.addresses.extend(addresses)
        self.sizes.extend(sizes)
        self.totals.extend(totals)
        self.reserved.extend(reserved)
        self.devices.extend(devices)


def device_of(code: int) -> tuple[int, int]:
    """Return type and number of a device; -1: it has no number."""
    kind, number = divmod(code, _DEVICES)
    return kind, number - 1


def _device(kind: Number, number: Number) -> int:
    return int(kind or 0) * _DEVICES + int(-1 if number is None else number) + 1


def _known(numbers: Iterable[Number]) -> array[int]:
    return array("q", [-1 if number is None else int(number) for number in numbers])
