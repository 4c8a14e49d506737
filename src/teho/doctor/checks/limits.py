"""Limits of a process that stop a training at once, or in the middle."""

from __future__ import annotations

from teho.doctor.outcome import Outcome, fine, symptom
from teho.doctor.snapshot import Snapshot
from teho.model.doctor import Symptom
from teho.model.finding import Severity, Threshold
from teho.schedulers.registry import scheduler_or_none
from teho.units import GIB, format_bytes

__all__ = ["ABOUT", "DECISIVE", "ID", "check"]

ID = "limits"
ABOUT = "limits on open files, address space and locked memory"
DECISIVE = False

_FILES = Threshold(
    1024,
    "files",
    "Linux's default; PyTorch's multiprocessing notes: each shared tensor holds one open",
)
_LOCKED = Threshold(
    64,
    "MiB",
    "Teho's own choice: InfiniBand pins its buffers, of which NCCL has some MiB a channel",
)


def check(snapshot: Snapshot) -> Outcome:
    """Look at open files, address space and locked memory."""
    found = [*_open_files(snapshot), *_address_space(snapshot), *_locked_memory(snapshot)]
    if found:
        return found
    files = snapshot.limits.open_files
    return fine(f"{files if files is not None else 'any number of'} open files")


def _open_files(snapshot: Snapshot) -> list[Symptom]:
    limit, most = snapshot.limits.open_files, snapshot.limits.open_files_most
    if limit is None or limit > _FILES.value:
        return []
    better = "unlimited" if most is None else str(most)
    can_be_raised = most is None or most > limit
    return [
        symptom(
            ID,
            Severity.WARNING if limit < _FILES.value else Severity.REMARK,
            f"A program may have {limit} files open: many loader workers may need more.",
            f"`ulimit -n {min(65536, most or 65536)}` in the job script."
            if can_be_raised
            else "Ask the site for more; or "
            "`torch.multiprocessing.set_sharing_strategy('file_system')`.",
            ("open files", limit, ""),
            ("may be raised to", better, ""),
            thresholds=(_FILES,),
        )
    ]


def _address_space(snapshot: Snapshot) -> list[Symptom]:
    limit = snapshot.limits.address_space_bytes
    if limit is None or not snapshot.expects_gpus:
        return []
    needed = sum(device.memory_bytes or 0 for device in snapshot.gpus)
    needed += snapshot.survey.memory_node_bytes or 0
    if limit >= needed:
        return []
    advice = scheduler_or_none(snapshot.allocation.scheduler).advice
    return [
        symptom(
            ID,
            Severity.WARNING,
            f"The address space is limited to {format_bytes(limit)}: CUDA reserves as much of it "
            "as the node and its GPUs have memory, and may not start.",
            advice.more_address_space or "`ulimit -v unlimited` in the job script.",
            ("limit", limit, "bytes"),
            ("of node and GPUs", needed, "bytes"),
            thresholds=(
                Threshold(
                    needed / GIB,
                    "GiB",
                    "NVIDIA, CUDA C++ programming guide, unified virtual address space",
                ),
            ),
        )
    ]


def _locked_memory(snapshot: Snapshot) -> list[Symptom]:
    limit = snapshot.limits.locked_memory_bytes
    several = (snapshot.allocation.node_count or 1) > 1
    if limit is None or not (several and snapshot.has_fabric):
        return []
    if limit >= _LOCKED.value * 1024**2:
        return []
    return [
        symptom(
            ID,
            Severity.WARNING,
            f"A program may lock {format_bytes(limit)} of memory: NCCL cannot use InfiniBand "
            "between the job's nodes.",
            "`ulimit -l unlimited` in the job script; if that is refused, report it to the site.",
            ("locked memory", limit, "bytes"),
            thresholds=(_LOCKED,),
        )
    ]
