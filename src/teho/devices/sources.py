"""Every vendor's GPUs of this node. A vendor is a folder beside this file with a `VENDOR`.

Only the standard library is loaded before a vendor is asked.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from teho import devices
from teho.devices.vendor import Vendor
from teho.errors import DeviceError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from teho.model.device import Device, DeviceSource

__all__ = ["VENDORS", "open_gpus", "other_devices", "versions_of", "visible_variables"]


def _find_vendors() -> dict[str, Vendor]:
    # Not pkgutil: it loads `inspect`, on each node and in each task.
    packages = [
        import_module(f"{devices.__name__}.{path.parent.name}")
        for folder in devices.__path__
        for path in Path(folder).glob("*/__init__.py")
    ]
    found = [package.VENDOR for package in packages if hasattr(package, "VENDOR")]
    return {vendor.name: vendor for vendor in sorted(found, key=_order)}


def _order(vendor: Vendor) -> tuple[int, str]:
    return vendor.order, vendor.name


VENDORS = _find_vendors()
"""Name -> vendor, in the order in which they are asked."""


def open_gpus(
    environment: Mapping[str, str], root: Path = Path("/")
) -> tuple[list[DeviceSource], list[DeviceError]]:
    """Open all GPUs of the job; if a vendor has none here, return why instead."""
    sources: list[DeviceSource] = []
    refusals: list[DeviceError] = []
    for vendor in VENDORS.values():
        try:
            sources.append(vendor.open_source(environment, root))
        except DeviceError as error:
            refusals.append(error)
    return sources, refusals


def other_devices(vendor: str, root: Path, known: Sequence[Device]) -> tuple[Device, ...]:
    """Return the vendor's GPUs that are here and not among those known.

    Args:
        vendor: such as `nvidia`.
        root: a folder that holds `sys`.
        known: the job's own.
    """
    ids = {device.id for device in known}
    return tuple(device for device in VENDORS[vendor].all_gpus(root) if device.id not in ids)


def versions_of(vendor: str, root: Path) -> dict[str, str]:
    """Return the versions of a vendor's driver and libraries, as far as they are known."""
    return {name: text for name, text in VENDORS[vendor].versions(root) if text}


def visible_variables() -> tuple[str, ...]:
    """Return the variables by which any vendor's runtime selects GPUs."""
    names = (name for vendor in VENDORS.values() for name in vendor.visible_variables)
    return tuple(dict.fromkeys(names))
