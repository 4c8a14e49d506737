"""The GPUs that a task sees, and which cores lie near each, from /proc and /sys alone.

No vendor's library is asked: that would take longer than the whole launch.
"""

from __future__ import annotations

import os

from teho.errors import InputError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Gpus", "find_gpus", "parse_cores"]

_NONE = {"", "-1", "NoDevFiles"}
"""What schedulers write where a task has no GPU."""


class Gpus:
    """The GPUs that are visible to this task, in the order in which programs count them."""

    __slots__ = ("names", "near", "variable", "why_unknown")

    def __init__(
        self,
        variable: str,
        names: list[str],
        near: list[frozenset[int] | None],
        why_unknown: str = "",
    ) -> None:
        self.variable = variable
        """Variable that makes GPUs visible to a process; empty where there is no GPU."""
        self.names = names
        """What stands in that variable for each."""
        self.near = near
        """Cores of the NUMA node that each hangs on; None where that is not known."""
        self.why_unknown = why_unknown


def find_gpus(environment: Mapping[str, str], top: str = "") -> Gpus:
    """Return the visible GPUs of a node; none, where there is none.

    Slurm tells the node's own numbers of a job's GPUs (`SLURM_STEP_GPUS`), while the visible
    ones are counted from 0 where the job is shut off from the others.

    Args:
        environment: of this process.
        top: what stands before `/proc` and `/sys`; empty but in tests.
    """
    nvidia = _nvidia_addresses(top)
    amd = [] if nvidia else _amd_addresses(top)
    get = environment.get
    cuda, rocr = get("CUDA_VISIBLE_DEVICES"), get("ROCR_VISIBLE_DEVICES")
    if amd or (rocr is not None and not nvidia):
        variable, visible, addresses = "ROCR_VISIBLE_DEVICES", rocr, amd
        if visible is None:
            visible = get("HIP_VISIBLE_DEVICES", cuda)
    else:
        variable, visible, addresses = "CUDA_VISIBLE_DEVICES", cuda, nvidia
    if visible is None:
        names = [str(index) for index in range(len(addresses))]
    else:
        names = [] if visible.strip() in _NONE else [n.strip() for n in visible.split(",")]
    if not names:
        return Gpus("", [], [])
    own = _node_numbers(environment)
    numbers = own if len(own) == len(names) else names
    if own and len(own) != len(names):
        why = f"{len(names)} GPUs are visible, and {len(own)} are the step's"
        return Gpus(variable, names, [None] * len(names), why)
    near = [_near(number, addresses, top) for number in numbers]
    why = "" if all(near) else "the system does not tell which cores lie near the GPUs"
    return Gpus(variable, names, near, why)


def _node_numbers(environment: Mapping[str, str]) -> list[str]:
    """Return the node's own numbers of the step's GPUs, as Slurm tells them."""
    text = environment.get("SLURM_STEP_GPUS") or environment.get("SLURM_JOB_GPUS") or ""
    try:
        return [str(number) for number in parse_cores(text)] if text else []
    except InputError:
        return []


def _nvidia_addresses(top: str) -> list[str]:
    """Return PCI addresses in the order of the driver's numbers, which is that of the bus."""
    try:
        return sorted(os.listdir(f"{top}/proc/driver/nvidia/gpus"))  # noqa: PTH208 - loads late
    except OSError:
        return []


def _amd_addresses(top: str) -> list[str]:
    """Return PCI addresses in ROCm's order: that of KFD's nodes, those of CPUs left out."""
    nodes = f"{top}/sys/class/kfd/kfd/topology/nodes"
    try:
        numbers = sorted(filter(str.isdigit, os.listdir(nodes)), key=int)  # noqa: PTH208 - loads late
    except OSError:
        return []
    addresses = []
    for number in numbers:
        lines = _read(f"{nodes}/{number}/properties").splitlines()
        facts = dict(line.split(None, 1) for line in lines if " " in line.strip())
        if facts.get("simd_count", "0").strip() == "0":
            continue
        place, domain = int(facts.get("location_id", "0")), int(facts.get("domain", "0"))
        addresses.append(f"{domain:04x}:{place >> 8 & 255:02x}:{place >> 3 & 31:02x}.{place & 7}")
    return addresses


def _near(name: str, addresses: list[str], top: str) -> frozenset[int] | None:
    """Return the cores near one GPU, named by its number or its UUID."""
    if name.isdigit():
        address = addresses[int(name)] if int(name) < len(addresses) else ""
    else:
        folder = f"{top}/proc/driver/nvidia/gpus"
        address = next((a for a in addresses if name in _read(f"{folder}/{a}/information")), "")
    if not address:
        return None
    device = f"{top}/sys/bus/pci/devices/{address.lower()}"
    if _read(f"{device}/numa_node").strip() in {"", "-1"}:
        return None
    try:
        return frozenset(parse_cores(_read(f"{device}/local_cpulist").strip())) or None
    except InputError:
        return None


def _read(path: str) -> str:
    """Return a small file's text; empty where it does not read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - loads late
            return file.read(65536)
    except OSError:
        return ""


def parse_cores(text: str) -> list[int]:
    """Return the numbers of a list such as `0-3,8`, or of a mask such as `0x10f`.

    Raises:
        InputError: it is neither.
    """
    text = text.strip()
    if text.startswith("0x"):
        try:
            mask = int(text, 16)
        except ValueError:
            raise InputError(f"{text[:40]!r}", "a mask such as 0x00fe") from None
        return [bit for bit in range(mask.bit_length()) if mask >> bit & 1]
    numbers: list[int] = []
    for item in filter(None, text.split(",")):
        first, dash, last = item.partition("-")
        last = last if dash else first
        if not (first.isdigit() and last.isdigit() and int(first) <= int(last) < 1 << 16):
            raise InputError(f"{text[:40]!r}", "cores such as 0-3,8")
        numbers += range(int(first), int(last) + 1)
    return numbers
