"""The GPUs that the driver shows are those that the job was given."""

from __future__ import annotations

from teho.doctor.outcome import Outcome, fine, moot, symptom, unknown
from teho.doctor.snapshot import Snapshot
from teho.errors import InputError
from teho.explain.wording import joined
from teho.launch.gpus import parse_cores
from teho.model.device import Device
from teho.model.doctor import Symptom
from teho.model.finding import Severity
from teho.schedulers.registry import scheduler_or_none
from teho.units import counted

__all__ = ["ABOUT", "DECISIVE", "ID", "check"]

ID = "gpus-allocated"
ABOUT = "GPUs that the driver shows, against the allocation"
DECISIVE = True


def check(snapshot: Snapshot) -> Outcome:
    """Compare what NVML and the kernel show with what the scheduler says."""
    if snapshot.failed_drivers:
        return [_failed(snapshot)]
    asked, seen = snapshot.allocation.gpus_held, len(snapshot.gpus)
    if not snapshot.in_job:
        if seen:
            return fine(f"{counted(seen, 'GPU')} visible, outside of a job")
        return moot(f"no job, and no GPU: {_why(snapshot)}")
    scheduler = scheduler_or_none(snapshot.allocation.scheduler)
    if asked is None and scheduler.tells_gpus:
        return moot(f"this job holds no GPU, by {scheduler.title}'s variables")
    if asked is None:
        return unknown("the scheduler does not report how many GPUs the job holds")
    if asked == 0:
        return moot("this job holds no GPU")
    if not seen:
        return [_none(snapshot, asked)]
    if strange := _others(snapshot):
        return [_wrong(snapshot, strange)]
    if seen < asked and snapshot.local_size == 1:
        return [_fewer(snapshot, asked)]
    if seen > asked:
        return [_more(snapshot, asked)]
    return fine(f"{counted(seen, 'GPU')} of {asked} that the job holds here")


def _failed(snapshot: Snapshot) -> Symptom:
    first = snapshot.failed_drivers[0]
    return symptom(
        ID,
        Severity.CRITICAL,
        f"The driver of the GPUs does not work: {first.why}.",
        "End this job, and submit it again with `--exclude` and this node's name, "
        f"`{snapshot.survey.host}`; report it to the administrator.",
        ("vendor", first.of.upper(), ""),
        dooms=bool(snapshot.allocation.gpus_held),
    )


def _none(snapshot: Snapshot, asked: int) -> Symptom:
    hidden = [vendor.next_step for vendor in snapshot.survey.gpus if vendor.next_step]
    return symptom(
        ID,
        Severity.CRITICAL,
        f"The job holds {counted(asked, 'GPU')} on this node, and none can be used: "
        f"{_why(snapshot)}.",
        f"Next: {hidden[0]}."
        if hidden
        else "End this job: it would compute on the CPU. Report it to the administrator of the "
        "node.",
        ("held by the job", asked, "GPUs"),
        ("visible", 0, "GPUs"),
        *(("variable", f"{name}={text}", "") for name, text in snapshot.survey.visible.items()),
        dooms=True,
    )


def _fewer(snapshot: Snapshot, asked: int) -> Symptom:
    return symptom(
        ID,
        Severity.WARNING,
        f"The job holds {counted(asked, 'GPU')} on this node, and a program started here sees "
        f"{len(snapshot.gpus)}.",
        "Take away what hides them: `unset CUDA_VISIBLE_DEVICES HIP_VISIBLE_DEVICES` before the "
        "program, or look for them in your own files; the scheduler sets what is right.",
        ("held by the job", asked, "GPUs"),
        ("visible", len(snapshot.gpus), "GPUs"),
        *(("variable", f"{name}={text}", "") for name, text in snapshot.survey.visible.items()),
    )


def _more(snapshot: Snapshot, asked: int) -> Symptom:
    return symptom(
        ID,
        Severity.WARNING,
        f"The job holds {counted(asked, 'GPU')} on this node, and a program started here sees "
        f"{len(snapshot.gpus)}: the others belong to other users.",
        "Use no more than the job's own: leave `CUDA_VISIBLE_DEVICES` and `ROCR_VISIBLE_DEVICES` "
        "as the scheduler sets them.",
        ("held by the job", asked, "GPUs"),
        ("visible", len(snapshot.gpus), "GPUs"),
    )


def _others(snapshot: Snapshot) -> list[Device]:
    """Return GPUs in use that Slurm gave to somebody else, on a node that shows all of its own.

    If a job sees its own alone, and with AMD always, they are counted again, from 0.
    """
    if not any(gpu.vendor == "nvidia" for gpu in snapshot.hidden_gpus):
        return []
    try:
        own = parse_cores(snapshot.survey.visible.get("SLURM_JOB_GPUS", ""))
    except InputError:
        return []
    return [gpu for gpu in snapshot.gpus if own and not gpu.parent_id and gpu.index not in own]


def _wrong(snapshot: Snapshot, strange: list[Device]) -> Symptom:
    visible = snapshot.survey.visible
    which = ", ".join(str(gpu.index) for gpu in strange)
    return symptom(
        ID,
        Severity.WARNING,
        f"Slurm gave this job GPU {visible['SLURM_JOB_GPUS']} of the node, and a program started "
        f"here uses GPU {which}, which is somebody else's.",
        "Set no `CUDA_VISIBLE_DEVICES` or `ROCR_VISIBLE_DEVICES` in your own files: Slurm sets "
        "what is right.",
        *(("variable", f"{name}={text}", "") for name, text in visible.items()),
    )


def _why(snapshot: Snapshot) -> str:
    # The vendor that has GPUs on this node has more to say than the other.
    vendors = [vendor for vendor in snapshot.survey.gpus if vendor.others] or snapshot.survey.gpus
    return joined([vendor.why for vendor in vendors]) if vendors else "no driver was asked"
