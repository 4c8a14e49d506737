"""The NVIDIA GPUs that a program sees, depending on its environment.

Source: CUDA Programming Guide, "CUDA Environment Variables". The guide does not say that CUDA reads
an index like `strtoul`, and shows no GPU if an entry occurs twice. PyTorch counts GPUs in this way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from teho.devices.visible import Visible, all_of_job, device_at, named_by_prefix, selected
from teho.model.device import Device
from teho.patterns import lazy_pattern

__all__ = ["visible_cuda"]

_LEADING_NUMBER = lazy_pattern(r"\s*[+-]?[0-9]{1,9}")
_VARIABLE = "CUDA_VISIBLE_DEVICES"


def visible_cuda(
    environment: Mapping[str, str],
    devices: Sequence[Device],
    legacy_names: Mapping[str, str] | None = None,
) -> Visible:
    """Return the NVIDIA devices that CUDA shows to the program, and notes for the report.

    A GPU in MIG mode is replaced by its instances, because CUDA uses only those.

    Args:
        environment: the program's environment.
        devices: GPUs in NVML's order, each followed by its MIG instances.
        legacy_names: `MIG-GPU-<uuid>/<gi>/<ci>` -> id of that instance.
    """
    gpus = [device for device in devices if device.parent_id is None]
    text = environment.get(_VARIABLE)
    if text is None:
        chosen, notes = all_of_job(environment, gpus)
    elif text.lstrip()[:4] in {"GPU-", "MIG-"}:
        by_name = {device.id: device for device in devices}
        by_name.update((name, by_name[id_]) for name, id_ in (legacy_names or {}).items())
        kind = text.lstrip()[:4]
        names = {name: device for name, device in by_name.items() if name.startswith(kind)}
        chosen, notes = selected(
            _VARIABLE, text, "CUDA", lambda entry: named_by_prefix(entry.strip(), kind, names)
        )
    else:
        chosen, notes = selected(
            _VARIABLE, text, "CUDA", lambda entry: device_at(gpus, _LEADING_NUMBER.match(entry))
        )
        if chosen and _order_is_unsure(environment, gpus):
            notes.append(
                f"with CUDA_VISIBLE_DEVICES={text}, CUDA gives the first number to the fastest "
                "GPU, and the GPU models here differ. So the program may use GPUs that Teho does "
                "not record. `export CUDA_DEVICE_ORDER=PCI_BUS_ID` makes the order of the GPUs "
                "certain"
            )
    if len(set(chosen)) < len(chosen):
        notes.append(f"CUDA_VISIBLE_DEVICES={text} names a GPU twice: CUDA then shows no GPU")
        chosen = []
    return _split(chosen, devices), tuple(notes)


def _split(gpus: Sequence[Device], devices: Sequence[Device]) -> tuple[Device, ...]:
    """Replace GPUs in MIG mode by their instances."""
    parts = {gpu: [it for it in devices if it.parent_id == gpu.id] or [gpu] for gpu in gpus}
    return tuple(part for gpu in gpus for part in parts[gpu])


def _order_is_unsure(environment: Mapping[str, str], gpus: Sequence[Device]) -> bool:
    by_bus = environment.get("CUDA_DEVICE_ORDER", "").upper() == "PCI_BUS_ID"
    return not by_bus and len({gpu.name for gpu in gpus}) > 1
