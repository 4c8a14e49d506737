"""Find the GPUs that a task sees, and the cores near each GPU, in /proc and /sys.

The vendors' libraries are not used: they would take longer than the whole launch.
"""

from __future__ import annotations

import os

from teho.errors import InputError
from teho.schedulers.hostlist import is_number
from teho.schedulers.task import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Gpus", "find_gpus", "parse_cores", "read_text"]

_NONE = {"", "-1", "NoDevFiles"}
"""Values that schedulers write for a task without a GPU."""
_MOST_CORES = 8192
"""Maximum of Linux on x86 (CONFIG_NR_CPUS)."""
_SLURM_GPUS = ("SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "SLURM_GPUS_ON_NODE")


@record
class Gpus:
    """The GPUs that are visible to this task, in the order of their numbers in programs."""

    variable: str
    """Variable that makes GPUs visible to a process; empty: no GPU."""
    names: list[str]
    """Entry of that variable for each GPU."""
    near: list[frozenset[int] | None]
    """Cores of the NUMA node of each GPU; None: unknown."""
    common: bool = True
    """Whether the other tasks of this node certainly see the same GPUs."""
    why_unknown: str = ""


def find_gpus(environment: Mapping[str, str], top: str = "") -> Gpus:
    """Return the visible GPUs of a node.

    `SLURM_STEP_GPUS` has the numbers of the job's GPUs on the node. The numbers of the visible
    GPUs begin at 0 if the job cannot access the other GPUs.

    Args:
        environment: of this process.
        top: prefix of `/proc` and `/sys`; only tests set it.
    """
    nvidia = _nvidia(top)
    amd = [] if nvidia else _amd_addresses(top)
    variable = _variable(environment, has_nvidia=bool(nvidia), has_amd=bool(amd))
    # A GPU that the job cannot access has no address here, and no number in programs.
    seen = [gpu["address"] for gpu in nvidia] or [address for address in amd if address]
    text = environment.get(variable)
    if text is not None:
        names = _listed(text)
    elif environment.get("SLURM_JOB_ID") and not any(map(environment.get, _SLURM_GPUS)):
        names = []
    else:
        names = [str(index) for index in range(len(seen))]
    if not names:
        return Gpus("", [], [])
    own = _node_numbers(environment)
    # With options such as --gpus-per-task, each task sees only some GPUs of the node.
    on_node = environment.get("SLURM_GPUS_ON_NODE")
    common = str(len(names)) == on_node if on_node else text is None or len(names) > 1
    in_order = environment.get("CUDA_DEVICE_ORDER", "").upper() == "PCI_BUS_ID"
    if own and len(own) != len(names):
        why = f"the step has {len(own)} GPUs, but this task sees {len(names)}"
    elif len({gpu.get("Model") for gpu in nvidia}) > 1 and not in_order:
        why = (
            "the order of the GPUs is not known, because the GPU models differ and CUDA puts the "
            "fastest GPU first"
        )
    elif own:
        # Slurm numbers the device files. CUDA numbers the GPUs in the order of the bus.
        minors = {gpu.get("Device Minor", ""): gpu["address"] for gpu in nvidia}
        found = [minors.get(number) or _at(number, amd) for number in own]
        return _described(variable, names, found, common=common, top=top)
    else:
        found = [_address(name, seen, nvidia) for name in names]
        return _described(variable, names, found, common=common, top=top)
    return Gpus(variable, names, [None] * len(names), common=common, why_unknown=why)


def _variable(environment: Mapping[str, str], *, has_nvidia: bool, has_amd: bool) -> str:
    """Return the variable that makes GPUs visible on this node."""
    if has_amd:
        names = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
        return next((name for name in names if name in environment), names[0])
    if has_nvidia or "CUDA_VISIBLE_DEVICES" in environment:
        return "CUDA_VISIBLE_DEVICES"
    return "ROCR_VISIBLE_DEVICES" if "ROCR_VISIBLE_DEVICES" in environment else ""


def _listed(text: str) -> list[str]:
    """Return the entries before the first empty one, as runtimes read them."""
    names: list[str] = []
    for entry in map(str.strip, text.split(",")):
        if entry in _NONE:
            break
        names.append(entry)
    return names


def _described(
    variable: str, names: list[str], addresses: list[str], *, common: bool, top: str
) -> Gpus:
    near = [_near(address, top) for address in addresses]
    why = "" if all(near) else "the system does not report which cores are near the GPUs"
    return Gpus(variable, names, near, common=common, why_unknown=why)


def _node_numbers(environment: Mapping[str, str]) -> list[str]:
    """Return the numbers of the step's GPUs on the node, as Slurm reports them."""
    text = environment.get("SLURM_STEP_GPUS") or environment.get("SLURM_JOB_GPUS") or ""
    try:
        return [str(number) for number in parse_cores(text)] if text else []
    except InputError:
        return []


def _nvidia(top: str) -> list[dict[str, str]]:
    """Return the driver's information about each GPU, in the order of the bus."""
    folder = f"{top}/proc/driver/nvidia/gpus"
    try:
        addresses = sorted(os.listdir(folder))  # noqa: PTH208 - loads late
    except OSError:
        return []
    gpus = []
    for address in addresses:
        lines = read_text(f"{folder}/{address}/information").splitlines()
        pairs = (line.partition(":") for line in lines)
        facts = {name.strip(): value.strip() for name, _, value in pairs}
        gpus.append({**facts, "address": address.lower()})
    return gpus


def _amd_addresses(top: str) -> list[str]:
    """Return PCI addresses in the order of ROCm: the nodes of KFD without CPUs.

    KFD does not report a GPU that the job cannot access (EPERM). Its address is empty.
    """
    nodes = f"{top}/sys/class/kfd/kfd/topology/nodes"
    try:
        numbers = sorted(filter(is_number, os.listdir(nodes)), key=int)  # noqa: PTH208 - loads late
    except OSError:
        return []
    addresses = []
    for number in numbers:
        lines = read_text(f"{nodes}/{number}/properties").splitlines()
        pairs = [line.split() for line in lines]
        facts = {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and is_number(pair[1])}
        if facts and not facts.get("simd_count"):
            continue
        place, domain = facts.get("location_id", 0), facts.get("domain", 0)
        address = f"{domain:04x}:{place >> 8 & 255:02x}:{place >> 3 & 31:02x}.{place & 7}"
        addresses.append(address if facts else "")
    return addresses


def _at(number: str, addresses: list[str]) -> str:
    return addresses[int(number)] if int(number) < len(addresses) else ""


def _address(name: str, addresses: list[str], nvidia: list[dict[str, str]]) -> str:
    """Return the address of a GPU by its number or UUID; empty: unknown."""
    if is_number(name):
        return _at(name, addresses)
    return next((gpu["address"] for gpu in nvidia if gpu.get("GPU UUID", "").startswith(name)), "")


def _near(address: str, top: str) -> frozenset[int] | None:
    """Return the cores near one GPU."""
    device = f"{top}/sys/bus/pci/devices/{address}"
    if not address or read_text(f"{device}/numa_node").strip() in {"", "-1"}:
        return None
    try:
        return frozenset(parse_cores(read_text(f"{device}/local_cpulist"))) or None
    except InputError:
        return None


def read_text(path: str) -> str:
    """Return the text of a small file; empty if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - loads late
            return file.read(65536)
    except OSError:
        return ""


def parse_cores(text: str) -> list[int]:
    """Return the numbers of a list such as `0-3,8`, or of a mask such as `0x10f`.

    Raises:
        InputError: the text is neither.
    """
    text = text.strip()
    if text.startswith("0x"):
        try:
            mask = int(text if len(text) < _MOST_CORES // 4 else "too long", 16)
        except ValueError:
            raise InputError(f"{text[:40]!r}", "a mask such as 0x00fe") from None
        return [bit for bit in range(mask.bit_length()) if mask >> bit & 1]
    numbers: list[int] = []
    for item in filter(None, text.split(",")):
        first, dash, last = item.partition("-")
        last = last if dash else first
        if not (is_number(first) and is_number(last) and int(first) <= int(last) < _MOST_CORES):
            raise InputError(f"{text[:40]!r}", "cores such as 0-3,8")
        numbers += range(int(first), int(last) + 1)
        if len(numbers) > _MOST_CORES:
            raise InputError(f"{text[:40]!r}", "each core once")
    return numbers
