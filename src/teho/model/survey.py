"""What a machine has, and which signals can be had there: what `teho devices` shows."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, Union

import msgspec

from teho.model.device import Device
from teho.model.missing import Missing

__all__ = ["SCHEMA", "Answers", "Signal", "Survey"]

SCHEMA = "teho.devices/1"
"""Name and version of the JSON form; a change that breaks readers raises the number."""

Signal = Union[float, int, Missing]
"""The value of a metric, or why it cannot be had."""


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """What the host, or all GPUs of one vendor, said."""

    of: str
    """`node`, `nvidia` or `amd`."""
    state: Literal["answered", "absent", "failed"] = "answered"
    """`absent`: there is nothing to ask. `failed`: the driver hung, or crashed its process."""
    why: str = ""
    """Why nothing answered."""
    next_step: str = ""
    devices: tuple[Device, ...] = ()
    """Those that a program started here would use."""
    others: tuple[Device, ...] = ()
    """Those that are here and that it would not, and the GPUs that MIG instances are parts of."""
    signals: dict[str, dict[str, Signal]] = {}
    """Device id (`node` for the host) -> metric -> what it is now. Counters are as the device
    counts them, from whatever start they have."""
    versions: dict[str, str] = {}
    """Of drivers and libraries."""
    notes: tuple[str, ...] = ()


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """One machine at one moment."""

    schema: str = SCHEMA
    at: datetime
    host: str
    scheduler: str | None
    """Of the job that this runs in; None outside of one."""
    job_id: str | None
    cores: tuple[int, ...]
    """Logical CPUs that a program started here may use."""
    core_count_node: int | None
    memory_node_bytes: int | None
    cpu_model: str
    visible: dict[str, str]
    """Variables that say which GPUs a program uses."""
    system: dict[str, str]
    """Kernel, distribution, cgroup version, container, Python, Teho."""
    node: Answers
    gpus: tuple[Answers, ...]
    """One for each vendor that Teho knows."""
