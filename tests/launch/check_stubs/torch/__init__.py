"""Stands in for a torch with GPUs, where there are none: no rank talks to another.

STUB_GPUS names this rank's GPUs by their uuid, comma between them; STUB_TORCH is the version;
STUB_WRONG is what an all_reduce gives instead of the sum.
"""

from __future__ import annotations

import os
from types import SimpleNamespace

__version__ = os.environ.get("STUB_TORCH", "2.9.1")
version = SimpleNamespace(hip=os.environ.get("STUB_HIP"))
_GPUS = [name for name in os.environ.get("STUB_GPUS", "").split(",") if name]
_chosen = []


class Tensor:
    """Elements that are all alike."""

    def __init__(self, value: float, device: SimpleNamespace) -> None:
        self.value = value
        self.device = device

    def __ne__(self, other: object) -> bool:
        return self.value != other

    __hash__ = None

    def __getitem__(self, where: bool) -> list[float]:
        return [self.value] if where else []


def device(kind: str, index: int = 0) -> SimpleNamespace:
    return SimpleNamespace(type=kind, index=index)


def full(shape: tuple[int], value: float, device: SimpleNamespace) -> Tensor:
    return Tensor(value, device)


def zeros(shape: int, device: SimpleNamespace) -> Tensor:
    return Tensor(0.0, device)


def rand(rows: int, columns: int, device: SimpleNamespace) -> Tensor:
    return Tensor(0.5, device)


def mm(left: Tensor, right: Tensor) -> Tensor:
    assert left.device.type == ("cuda" if _chosen else "cpu")
    return left


cuda = SimpleNamespace(
    is_available=lambda: bool(_GPUS),
    device_count=lambda: len(_GPUS),
    get_device_name=lambda index: "A GPU 9000",
    get_device_properties=lambda index: SimpleNamespace(uuid=_GPUS[index]),
    set_device=_chosen.append,
    synchronize=lambda: None,
)
