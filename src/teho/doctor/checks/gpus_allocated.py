"""Does the driver show the GPUs that the job was allocated?"""

from __future__ import annotations

from teho.doctor.outcome import Outcome, critical, fine, not_applicable, unknown, warning
from teho.doctor.snapshot import Snapshot
from teho.errors import InputError
from teho.explain.wording import joined
from teho.launch.gpus import parse_cores
from teho.model.device import Device
from teho.schedulers.registry import scheduler_or_none
from teho.units import counted

__all__ = ["ABOUT", "DECISIVE", "check"]

ABOUT = "GPUs that the driver shows, compared with the allocation"
DECISIVE = True


def check(snapshot: Snapshot) -> Outcome:
    """Compare the GPUs that the driver shows with those that the scheduler reports."""
    expected, seen = snapshot.allocation.gpus_held, len(snapshot.gpus)
    visible = snapshot.survey.visible
    are_visible = f"{counted(seen, 'GPU')} {'is' if seen == 1 else 'are'} visible"
    if snapshot.failed_drivers:
        first = snapshot.failed_drivers[0]
        return critical(
            f"The driver of the GPUs does not work: {first.why}.",
            "End this job, and submit it again without this node: "
            f"`--exclude={snapshot.survey.host}`. Report the node to the administrator.",
            ("vendor", first.source.upper(), ""),
            is_fatal=bool(expected),
        )
    if not snapshot.in_job:
        if seen:
            return fine(f"{are_visible}, but this is not a job")
        return not_applicable(f"this is not a job, and there is no GPU: {_why(snapshot)}")
    scheduler = scheduler_or_none(snapshot.allocation.scheduler)
    if expected is None and not scheduler.reports_gpus:
        return unknown("the scheduler does not report how many GPUs the job was allocated")
    if not expected:
        source = f", as {scheduler.title}'s variables say" if expected is None else ""
        return not_applicable(f"this job has no GPU{source}")
    allocated = f"The job was allocated {counted(expected, 'GPU')} on this node, but"
    variables = [
        ("variable", f"{name}={text}", "") for name, text in snapshot.survey.visible.items()
    ]
    evidence = [("allocated to the job", expected, "GPUs"), ("visible", seen, "GPUs")]
    if not seen:
        steps = [vendor.next_step for vendor in snapshot.survey.gpus if vendor.next_step]
        return critical(
            f"{allocated} none can be used: {_why(snapshot)}.",
            f"Next: {steps[0]}."
            if steps
            else (
                "End this job, because it would compute on the CPU. Report the node to its "
                "administrator."
            ),
            *evidence,
            *variables,
            is_fatal=True,
        )
    if strange := _others(snapshot):
        which = ", ".join(str(gpu.index) for gpu in strange)
        return warning(
            f"Slurm gave this job GPU {visible['SLURM_JOB_GPUS']} of the node, but a "
            f"program started here uses GPU {which}, which belongs to another job.",
            "Do not set `CUDA_VISIBLE_DEVICES` or `ROCR_VISIBLE_DEVICES` in your own files: Slurm "
            "sets the right values.",
            *variables,
        )
    if seen < expected and snapshot.local_size == 1:
        return warning(
            f"{allocated} a program started here sees only {seen}.",
            "Run `unset CUDA_VISIBLE_DEVICES HIP_VISIBLE_DEVICES` before the program, or remove "
            "these variables from your own files: the scheduler sets the right values.",
            *evidence,
            *variables,
        )
    if seen > expected:
        return warning(
            f"{allocated} a program started here sees {seen}. The other GPUs belong to other "
            "users.",
            "Use only the job's own GPUs: leave `CUDA_VISIBLE_DEVICES` and "
            "`ROCR_VISIBLE_DEVICES` as the scheduler sets them.",
            *evidence,
        )
    return fine(f"{are_visible}; the job was allocated {counted(expected, 'GPU')} on this node")


def _others(snapshot: Snapshot) -> list[Device]:
    """Return GPUs in use that Slurm gave to another job, if the node shows all of its GPUs.

    If a job sees only its own GPUs, they are numbered from 0 again. With AMD this is always so.
    """
    if not any(gpu.vendor == "nvidia" for gpu in snapshot.hidden_gpus):
        return []
    try:
        own = parse_cores(snapshot.survey.visible.get("SLURM_JOB_GPUS", ""))
    except InputError:
        return []
    return [gpu for gpu in snapshot.gpus if own and not gpu.parent_id and gpu.index not in own]


def _why(snapshot: Snapshot) -> str:
    # A vendor that has GPUs on this node knows more than the other.
    vendors = [vendor for vendor in snapshot.survey.gpus if vendor.others] or snapshot.survey.gpus
    return joined([vendor.why for vendor in vendors]) if vendors else "no driver was read"
