"""Read what a user typed as a request: the options of `teho plan`, also from a form."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from teho.errors import InputError, UnitError
from teho.model.request import Request
from teho.units import GIB, MIB, parse_bytes, parse_duration

__all__ = ["read_request"]

_MEMORIES = ("mem", "mem_per_cpu", "mem_per_gpu")


def read_request(given: Mapping[str, Any], argv: tuple[str, ...], *, account: str = "") -> Request:
    """Return the request that some options describe.

    Args:
        given: the name of each option, with `_` instead of `-`, and its value. Sizes and times are
            text, numbers are numbers. None or empty: not given.
        argv: the words of the user's command.
        account: the project to charge if none is given.

    Raises:
        InputError: a value is not valid, or two options contradict each other.
    """
    gpus, cpus, cpus_per_gpu = given["gpus"], given["cpus"], given["cpus_per_gpu"]
    if cpus is not None and cpus_per_gpu is not None:
        raise InputError("--cpus and --cpus-per-gpu together", "one of them")
    if cpus_per_gpu is not None and gpus == 0:
        raise InputError(
            "--cpus-per-gpu without GPUs", next_step="request cores for the whole job: `--cpus N`"
        )
    if gpus == 0 and (given["gpu_type"] or given["gpu_memory"]):
        what = "--gpu-type" if given["gpu_type"] else "--gpu-memory"
        raise InputError(f"{what} with --gpus 0", "one or more GPUs")
    memories = [name for name in _MEMORIES if given[name]]
    if len(memories) > 1:
        named = " and ".join(f"--{name.replace('_', '-')}" for name in memories)
        raise InputError(f"{named} together", "one of them")
    if gpus == 0 and given["mem_per_gpu"]:
        raise InputError(
            "--mem-per-gpu without GPUs", next_step="request memory for each node: `--mem SIZE`"
        )
    read = {
        "command": argv,
        "account": given["account"] or account or None,
        "gpu_memory_gib": _gib(given["gpu_memory"], "--gpu-memory"),
        "local_disk_gib": _gib(given["local_disk"], "--local-disk"),
        "memory_mib": _mib(given["mem"], "--mem"),
        "memory_per_core_mib": _mib(given["mem_per_cpu"], "--mem-per-cpu"),
        "memory_per_gpu_mib": _mib(given["mem_per_gpu"], "--mem-per-gpu"),
        "time_s": _seconds(given["time"]),
    }
    same = {name: given[name] for name in Request.__struct_fields__ if name in given}
    return Request(**{**same, **read})


def _gib(text: str | None, what: str) -> float | None:
    if text is None:
        return None
    amount = parse_bytes(text, what)
    if amount < MIB:
        # A number without a unit means bytes to Teho and MB to Slurm.
        raise UnitError(f"{what}: {text!r} is {amount} bytes", "a size such as 512MiB or 64GiB")
    return amount / GIB


def _mib(text: str | None, what: str) -> int | None:
    amount_gib = _gib(text, what)
    return None if amount_gib is None else math.ceil(amount_gib * GIB / MIB)


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    if text.strip().isdigit():
        raise UnitError(
            f"--time: {text!r} means minutes in Slurm, but seconds in Grid Engine",
            f"a unit, such as {text.strip()}min",
        )
    seconds = parse_duration(text, "--time")
    if seconds <= 0:
        raise UnitError(f"--time: {text!r} is not above 0", "a length such as 30min or 2h")
    return seconds
