"""Devices of a machine and their available signals, for `teho devices`."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, Union

import msgspec

from teho.model.device import Device
from teho.model.missing import Missing

__all__ = ["SCHEMA", "Answers", "Signal", "Survey"]

SCHEMA = "teho.devices/1"
"""Name and version of the JSON form; an incompatible change raises the number."""

Signal = Union[float, int, Missing]
"""The value of a metric, or why it is missing."""


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """Answers of the host, or of all GPUs of one vendor."""

    source: str = msgspec.field(name="of")  # the key in `teho devices --format json`
    """`node`, `nvidia` or `amd`."""
    state: Literal["answered", "absent", "failed"] = "answered"
    """`absent`: no such device. `failed`: the driver hung, or crashed its process."""
    why: str = ""
    """Why no device answered."""
    next_step: str = ""
    devices: tuple[Device, ...] = ()
    """Devices that a program started here would use."""
    others: tuple[Device, ...] = ()
    """Other devices of this node, and the GPUs of the MIG instances."""
    signals: dict[str, dict[str, Signal]] = {}
    """Device id (`node` for the host) -> metric -> present value. Counters are as the device
    counts them."""
    versions: dict[str, str] = {}
    """Versions of drivers and libraries."""
    notes: tuple[str, ...] = ()


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """One machine at one moment."""

    schema: str = SCHEMA
    at: datetime
    host: str
    scheduler: str | None
    """Scheduler of the present job. None: outside a job."""
    job_id: str | None
    cores: tuple[int, ...]
    """Logical CPUs that a program started here may use."""
    core_count_node: int | None
    memory_node_bytes: int | None
    cpu_model: str
    visible: dict[str, str]
    """Variables that select the GPUs of a program."""
    system: dict[str, str]
    """Kernel, distribution, cgroup version, container, Python, Teho."""
    node: Answers
    gpus: tuple[Answers, ...]
    """One entry for each vendor that Teho knows."""
