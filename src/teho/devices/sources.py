"""All GPUs of this node. A vendor is a folder in this package whose `__init__.py` has a `VENDOR`.

Finding the vendors loads only the standard library.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from teho import devices
from teho.devices.vendor import Vendor
from teho.errors import DeviceError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from teho.model.device import Device, DeviceSource

__all__ = [
    "VENDORS",
    "open_each",
    "open_gpus",
    "other_devices",
    "selection",
    "versions_of",
    "visible_variables",
]

T = TypeVar("T")


def _find_vendors() -> dict[str, Vendor]:
    # Not pkgutil, because it loads `inspect` on each node and in each task.
    packages = [
        import_module(f"{devices.__name__}.{path.parent.name}")
        for folder in devices.__path__
        for path in Path(folder).glob("*/__init__.py")
    ]
    found: list[Vendor] = [package.VENDOR for package in packages if hasattr(package, "VENDOR")]
    found.sort(key=lambda vendor: (vendor.order, vendor.name))
    return {vendor.name: vendor for vendor in found}


VENDORS = _find_vendors()
"""Name -> vendor, in the order in which they are asked."""


def open_gpus(
    environment: Mapping[str, str], root: Path = Path("/")
) -> tuple[list[DeviceSource], list[DeviceError]]:
    """Open all GPUs of the job. Also return an error for each vendor without GPUs of the job."""
    return open_each(lambda vendor: vendor.open_source(environment, root))


def open_each(open_one: Callable[[Vendor], T]) -> tuple[list[T], list[DeviceError]]:
    """Return what a function opens for each vendor, and the errors of the other vendors."""
    opened: list[T] = []
    refusals: list[DeviceError] = []
    for vendor in VENDORS.values():
        try:
            opened.append(open_one(vendor))
        except DeviceError as error:
            refusals.append(error)
    return opened, refusals


def other_devices(vendor: str, root: Path, known: Sequence[Device]) -> tuple[Device, ...]:
    """Return a vendor's GPUs on this node, without the known ones.

    Args:
        vendor: such as `nvidia`.
        root: a folder that contains `sys`.
        known: the job's GPUs.
    """
    ids = {device.id for device in known}
    return tuple(device for device in VENDORS[vendor].all_gpus(root) if device.id not in ids)


def versions_of(vendor: str, root: Path) -> dict[str, str]:
    """Return the known versions of a vendor's driver and libraries."""
    return {name: text for name, text in VENDORS[vendor].versions(root) if text}


def selection(devices: Sequence[Device]) -> str:
    """Return assignments of variables that show a program only these devices of one vendor."""
    vendor = VENDORS[devices[0].vendor]
    is_mig = any(device.parent_id for device in devices)
    shown = ",".join(device.id if is_mig else str(device.index) for device in devices)
    order = "" if is_mig else vendor.index_order
    return f"{order} {vendor.visible_variables[0]}={shown}".strip()


def visible_variables() -> tuple[str, ...]:
    """Return the variables with which the vendors' runtimes select GPUs."""
    names = (name for vendor in VENDORS.values() for name in vendor.visible_variables)
    return tuple(dict.fromkeys(names))
