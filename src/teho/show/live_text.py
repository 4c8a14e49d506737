"""Facts of GPUs and processes as text: driver, compute mode, P-state, type and user."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from teho.explain.wording import numbered
from teho.model.device import Device, DeviceFact, ProcessType
from teho.model.live import GpuNow, ProcessNow
from teho.model.missing import Missing, Reason
from teho.store.owner import user_name

__all__ = [
    "PCI_ADDRESS",
    "device_facts",
    "fact_or_why",
    "gpus_with",
    "p_state_text",
    "slice_of",
    "type_letters",
    "user_of",
]

PCI_ADDRESS = "PCI address"
"""Label of the one fact that no two GPUs of a node share."""
_NOT_RECORDED = Missing(
    Reason.UNRECORDED, "an older version of Teho made this recording, or it is from a log"
)
_NO_OWNER = Missing(Reason.UNRECORDED, "the recorder of this node has not sent the user")
_LETTERS: Mapping[ProcessType, str] = {"MPS": "M", "compute": "C", "graphics": "G"}


def fact_or_why(fact: DeviceFact) -> str | Missing:
    """Return a fact of a device, or why it is missing."""
    return _NOT_RECORDED if fact is None else fact


def device_facts(device: Device) -> dict[str, str | Missing]:
    """Return the facts of a GPU that its screen shows, by their labels."""
    facts: dict[str, str | Missing] = {"Driver": fact_or_why(device.driver)}
    platform = fact_or_why(device.platform)
    if isinstance(platform, Missing):
        facts["Platform"] = platform
    else:
        name, _, version = platform.partition(" ")
        facts[f"{name} version"] = version
    facts["Compute mode"] = fact_or_why(device.compute_mode)
    if parent := slice_of(device):
        facts["MIG slice of"] = parent
    elif device.pci_bus_id:
        facts[PCI_ADDRESS] = device.pci_bus_id
    return facts


def slice_of(device: Device) -> str:
    """Return the PCI address and the id of a MIG slice's GPU; empty for a whole GPU."""
    if not device.parent_id:
        return ""
    # The address comes first, because a narrow screen cuts the end off.
    return f"{device.pci_bus_id or '–'}, {device.parent_id}"


def p_state_text(p_state: int | Missing) -> str | Missing:
    """Return a performance state such as `P0`, or why it is missing."""
    return p_state if isinstance(p_state, Missing) else f"P{p_state}"


def gpus_with(
    gpus: Iterable[GpuNow], device_texts: Mapping[str, str | Missing], *, is_part: bool = False
) -> str:
    """Return the texts of a node's GPUs; if they differ, each with its GPUs, the rarest first.

    Args:
        gpus: of one node.
        device_texts: id of the device -> its text.
        is_part: whether the node has other GPUs, so that these must be named.
    """
    places: dict[str | Missing, list[int]] = {}
    for gpu in gpus:
        places.setdefault(device_texts[gpu.device.id], []).append(gpu.position)
    texts = {text: _why(text) if isinstance(text, Missing) else text for text in places}
    if len(places) == 1 and not is_part:
        return next(iter(texts.values()))
    return "; ".join(
        f"{texts[text]} (GPU{'s' if len(numbers) > 1 else ''} {numbered(numbers)})"
        for text, numbers in sorted(places.items(), key=lambda pair: len(pair[1]))
    )


def _why(missing: Missing) -> str:
    return f"{missing}: {missing.detail}" if missing.detail else str(missing)


def type_letters(types: Iterable[ProcessType]) -> str:
    """Return how a process uses a GPU in the letters of nvidia-smi, such as `M+C`."""
    return "+".join(_LETTERS[one] for one in sorted(types))


def user_of(process: ProcessNow, own: str) -> str | Missing:
    """Return the user who owns a process. The name comes from the machine of the viewer.

    Args:
        process: the process.
        own: name of the user who owns the recording.
    """
    if process.owner == "own":
        return own or _NO_OWNER
    if process.owner == "other":
        return "other user"
    return _NO_OWNER if process.owner is None else user_name(process.owner)
