"""Does a limit of the process stop a training?"""

from __future__ import annotations

from teho.doctor.outcome import Outcome, fine, remark, warning
from teho.doctor.snapshot import Snapshot
from teho.model.doctor import Symptom
from teho.model.finding import Threshold
from teho.schedulers.registry import scheduler_or_none
from teho.units import GIB, MIB, format_bytes

__all__ = ["ABOUT", "check"]

ABOUT = "limits on open files, address space and locked memory"

_FILES = Threshold(
    1024,
    "files",
    "Linux's default limit is 1024 open files; PyTorch's notes on multiprocessing say that each "
    "shared tensor needs one open file",
)
_LOCKED = Threshold(
    64,
    "MiB",
    "Teho's own choice: InfiniBand needs buffers in locked memory, and NCCL needs some MiB of "
    "such buffers for each channel",
)
_ADDRESSES = (
    "CUDA needs addresses for the memory of all GPUs and of the node (NVIDIA, CUDA C++ "
    "programming guide, unified virtual address space)"
)


def check(snapshot: Snapshot) -> Outcome:
    """Judge open files, address space and locked memory."""
    limits = (_open_files(snapshot), _address_space(snapshot), _locked_memory(snapshot))
    files = snapshot.limits.open_files
    return [one for one in limits if one] or fine(
        f"a program may open {files if files is not None else 'any number of'} files at a time"
    )


def _open_files(snapshot: Snapshot) -> Symptom | None:
    limit, most = snapshot.limits.open_files, snapshot.limits.open_files_most
    if limit is None or limit > _FILES.value:
        return None
    return (warning if limit < _FILES.value else remark)(
        f"A program may open only {limit} files at a time: many loader workers may need more.",
        f"Run `ulimit -n {min(65536, most or 65536)}` in the job script."
        if most is None or most > limit
        else "Ask the cluster's support for a higher limit, or call "
        "`torch.multiprocessing.set_sharing_strategy('file_system')`.",
        ("open files", limit, ""),
        ("may be raised to", "unlimited" if most is None else str(most), ""),
        thresholds=(_FILES,),
    )


def _address_space(snapshot: Snapshot) -> Symptom | None:
    limit = snapshot.limits.address_space_bytes
    needed = sum(device.memory_bytes or 0 for device in snapshot.gpus)
    needed += snapshot.survey.memory_node_bytes or 0
    if limit is None or not snapshot.expects_gpus or limit >= needed:
        return None
    advice = scheduler_or_none(snapshot.allocation.scheduler).advice
    return warning(
        f"The address space is limited to {format_bytes(limit)}. CUDA needs addresses for the "
        "memory of the node and of its GPUs, and may fail to start.",
        advice.more_address_space or "Run `ulimit -v unlimited` in the job script.",
        ("limit", limit, "bytes"),
        ("memory of node and GPUs", needed, "bytes"),
        thresholds=(Threshold(needed / GIB, "GiB", _ADDRESSES),),
    )


def _locked_memory(snapshot: Snapshot) -> Symptom | None:
    limit = snapshot.limits.locked_memory_bytes
    needs_it = snapshot.has_fabric and (snapshot.allocation.node_count or 1) > 1
    if limit is None or not needs_it or limit >= _LOCKED.value * MIB:
        return None
    return warning(
        f"A program may lock only {format_bytes(limit)} of memory. So NCCL cannot use the fast "
        "network (InfiniBand) between the job's nodes.",
        "Run `ulimit -l unlimited` in the job script. If this is refused, ask the cluster's "
        "support for a higher limit.",
        ("locked memory", limit, "bytes"),
        thresholds=(_LOCKED,),
    )
