"""Read Slurm's lists of resources: generic resources (Gres) and trackable resources (TRES)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from teho.schedulers.inventory import UNTYPED
from teho.units import parse_bytes

__all__ = ["gpu_limit", "gpus_in", "gres_items", "ids_in", "tres_limits"]


def tres_limits(text: str) -> dict[str, int]:
    """Read `cpu=64,gres/gpu=2,mem=80G`: memory in MiB, the rest as numbers."""
    found = {}
    for item in filter(None, text.split(",")):
        key, _, amount = item.partition("=")
        if key == "mem":
            found[key] = parse_bytes(amount) // 1024**2
        elif amount.isdecimal():
            found[key] = int(amount)
    return found


def gpus_in(gres: str) -> tuple[tuple[str, int], ...]:
    """Read `gpu:a100:4(S:0-1),gpu:a100_1g.5gb:7`. GPUs without a type have the type `gpu`."""
    found: dict[str, int] = {}
    for item in gres_items(gres):
        name, *words = item.split(":")
        if name != "gpu":
            continue
        count = int(words.pop()) if words and words[-1].isdecimal() else 1
        gpu_type = words[0] if words else UNTYPED
        found[gpu_type] = found.get(gpu_type, 0) + count
    return tuple((gpu_type, count) for gpu_type, count in found.items() if count)


def gres_items(gres: str) -> list[str]:
    """Return the items of a Gres list, without their sockets."""
    # The sockets after an item may contain a comma: `gpu:4(S:0,1)`.
    return [item for item in re.sub(r"\([^)]*\)", "", gres).split(",") if item]


def gpu_limit(limits: Mapping[str, int], types: set[str]) -> int | None:
    """Return the limit on GPUs of any type, or of the only type."""
    if len(types) == 1:
        return limits.get("gres/gpu", limits.get(f"gres/gpu:{next(iter(types))}"))
    return limits.get("gres/gpu")


def ids_in(text: str) -> set[int]:
    """Read a list of CPUs such as `0,8-9`."""
    found: set[int] = set()
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", text):
        found.update(range(int(first), int(last or first) + 1))
    return found
