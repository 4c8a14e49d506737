"""Which of a node's GPUs are the job's own, by the environment of its program.

Each runtime reads its variable in its own way; these functions read it as the runtime
does, so that position 0 of the answer is what the program calls its first GPU.

Sources: CUDA Programming Guide, "CUDA Environment Variables"; ROCR-Runtime,
`amd_filter_device.cpp`; ROCm CLR, `rocdevice.cpp` and `flags.cpp`. That CUDA reads an
index as `strtoul` does, and shows nothing at all when an entry comes twice, is not in
the guide; PyTorch's own count of GPUs rests on it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from teho.model.device import Device

__all__ = ["visible_cuda", "visible_rocm"]

_Visible = tuple[tuple[Device, ...], tuple[str, ...]]
_Chosen = tuple[list[Device], list[str]]

_LEADING_NUMBER = re.compile(r"\s*([+-]?[0-9]{1,9})")
_NUMBER = re.compile(r"[+-]?[0-9]{1,9}")
_PLAIN_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")
# What schedulers write where they mean "none": no cause for a note.
_NONE = {"", "-1", "NoDevFiles"}
_SLURM_GPU_LISTS = ("SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "GPU_DEVICE_ORDINAL")
_SLURM_GPU_COUNTS = ("SLURM_GPUS", "SLURM_GPUS_ON_NODE")


def visible_cuda(
    environment: Mapping[str, str],
    devices: Sequence[Device],
    legacy_names: Mapping[str, str] | None = None,
) -> _Visible:
    """Return the NVIDIA devices that CUDA shows to the program, and notes for the report.

    A GPU in MIG mode stands for its instances: CUDA cannot use it in any other way.

    Args:
        environment: the program's environment.
        devices: GPUs in NVML's order, each followed by its MIG instances.
        legacy_names: `MIG-GPU-<uuid>/<gi>/<ci>` -> id of that instance.
    """
    gpus = [device for device in devices if device.parent_id is None]
    text = environment.get("CUDA_VISIBLE_DEVICES")
    if text is None:
        chosen, notes = _all_of_job(environment, gpus)
    elif text.lstrip()[:4] in {"GPU-", "MIG-"}:
        by_name = {device.id: device for device in devices}
        by_name.update((name, by_name[id_]) for name, id_ in (legacy_names or {}).items())
        chosen, notes = _cuda_names(text, by_name)
    else:
        chosen, notes = _cuda_indices(text, gpus)
        if chosen and _order_is_unsure(environment, gpus):
            notes.append(
                f"CUDA_VISIBLE_DEVICES={text} counts the fastest GPU first, and the models here "
                "differ, so other GPUs may be in use than those recorded; `export "
                "CUDA_DEVICE_ORDER=PCI_BUS_ID` makes the order certain"
            )
    if len(set(chosen)) < len(chosen):
        notes.append(f"CUDA_VISIBLE_DEVICES={text} names a GPU twice; CUDA shows none at all then")
        chosen = []
    return _split(chosen, devices), tuple(notes)


def visible_rocm(environment: Mapping[str, str], devices: Sequence[Device]) -> _Visible:
    """Return the AMD devices that HIP shows to the program, and notes for the report.

    `ROCR_VISIBLE_DEVICES` is applied first; `HIP_VISIBLE_DEVICES`, or else
    `CUDA_VISIBLE_DEVICES`, then counts among what that left.

    Args:
        environment: the program's environment.
        devices: GPUs in the order of KFD's topology; ids are `GPU-<unique id>` where known.
    """
    runtime = environment.get("ROCR_VISIBLE_DEVICES")
    names = ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
    # Set but empty counts as set: HIP then shows nothing, whatever the other one says.
    hip = next((name for name in names if name in environment), None)
    if runtime is None and hip is None:
        left, notes = _all_of_job(environment, devices)
    else:
        left, notes = list(devices), []
    if runtime is not None:
        left, notes = _rocr(runtime, devices)
    if hip is not None:
        left, more = _hip(hip, environment[hip], left)
        notes += more
    return tuple(left), tuple(notes)


def _cuda_names(text: str, by_name: Mapping[str, Device]) -> _Chosen:
    kind = text.lstrip()[:4]
    names = {name: device for name, device in by_name.items() if name.startswith(kind)}
    found: list[Device] = []
    for entry in text.split(","):
        device = _by_prefix(entry.strip(), kind, names)
        if device is None:
            return found, _unmatched("CUDA_VISIBLE_DEVICES", text, entry, "CUDA")
        found.append(device)
    return found, []


def _cuda_indices(text: str, gpus: Sequence[Device]) -> _Chosen:
    found: list[Device] = []
    for entry in text.split(","):
        number = _LEADING_NUMBER.match(entry)
        device = _at(gpus, int(number[1]) if number else -1)
        if device is None:
            return found, _unmatched("CUDA_VISIBLE_DEVICES", text, entry, "CUDA")
        found.append(device)
    return found, []


def _rocr(text: str, devices: Sequence[Device]) -> _Chosen:
    by_name = {device.id.upper(): device for device in devices}
    found: list[Device] = []
    # ROCr looks at no more entries than the node has GPUs.
    for entry in text.split(",")[: len(devices)]:
        token = entry.strip().upper()
        if token.startswith("G"):
            device = _by_prefix(token, "GPU-", by_name)
        else:
            device = _at(devices, int(token) if _NUMBER.fullmatch(token) else -1)
        if device is None or device in found:
            return found, _unmatched("ROCR_VISIBLE_DEVICES", text, entry, "ROCr")
        found.append(device)
    return found, []


def _hip(name: str, text: str, devices: Sequence[Device]) -> _Chosen:
    by_name = {device.id: device for device in devices}
    found: list[Device] = []
    for entry in text.split(","):
        if entry.startswith("GPU-"):
            device = by_name.get(entry)
        else:
            # HIP takes plain decimals only: " 1" and "01" end the list.
            plain = _PLAIN_NUMBER.fullmatch(entry)
            device = _at(devices, int(entry) if plain else -1)
        if device is None:
            return found, _unmatched(name, text, entry, "HIP")
        if device not in found:
            found.append(device)
    return found, []


def _all_of_job(environment: Mapping[str, str], devices: Sequence[Device]) -> _Chosen:
    """Return what a program sees when no variable says: all, unless its job holds no GPU."""
    in_lists = any(environment.get(name, "") for name in _SLURM_GPU_LISTS)
    counted = any(environment.get(name, "") not in {"", "0"} for name in _SLURM_GPU_COUNTS)
    if "SLURM_JOB_ID" not in environment or in_lists or counted or not devices:
        return list(devices), []
    return [], [f"this Slurm job holds no GPU; the {len(devices)} of the node are not recorded"]


def _split(gpus: Sequence[Device], devices: Sequence[Device]) -> tuple[Device, ...]:
    """Replace each GPU in MIG mode by its instances."""
    parts = {gpu: [it for it in devices if it.parent_id == gpu.id] or [gpu] for gpu in gpus}
    return tuple(part for gpu in gpus for part in parts[gpu])


def _at(devices: Sequence[Device], index: int) -> Device | None:
    return devices[index] if 0 <= index < len(devices) else None


def _by_prefix(entry: str, kind: str, by_name: Mapping[str, Device]) -> Device | None:
    """Return the device that is so called, or the only one whose name begins so."""
    if entry in by_name:
        return by_name[entry]
    if not entry.startswith(kind) or entry == kind:
        return None
    matches = {device for name, device in by_name.items() if name.startswith(entry)}
    return matches.pop() if len(matches) == 1 else None


def _order_is_unsure(environment: Mapping[str, str], gpus: Sequence[Device]) -> bool:
    by_bus = environment.get("CUDA_DEVICE_ORDER", "").upper() == "PCI_BUS_ID"
    return not by_bus and len({gpu.name for gpu in gpus}) > 1


def _unmatched(variable: str, text: str, entry: str, reader: str) -> list[str]:
    if text.strip() in _NONE or entry.strip().startswith("-"):
        return []  # said on purpose
    trouble = f"{entry.strip()!r} names no GPU here, or one named before; {reader} reads no further"
    return [f"{variable}={text}: {trouble}"]
