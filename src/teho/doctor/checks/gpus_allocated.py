"""The GPUs that the driver shows are those that the job was given."""

from __future__ import annotations

from teho.doctor.outcome import Outcome, fine, moot, symptom, unknown
from teho.doctor.scene import Scene
from teho.errors import InputError
from teho.explain.wording import joined
from teho.launch.gpus import parse_cores
from teho.model.device import Device
from teho.model.doctor import Symptom
from teho.model.finding import Severity
from teho.units import counted

__all__ = ["ABOUT", "DECISIVE", "ID", "look"]

ID = "gpus-allocated"
ABOUT = "GPUs that the driver shows, against the allocation"
DECISIVE = True


def look(scene: Scene) -> Outcome:
    """Compare what NVML and the kernel show with what the scheduler says."""
    if scene.failed_drivers:
        return [_failed(scene)]
    asked, seen = scene.allocation.gpus_held, len(scene.gpus)
    if not scene.in_job:
        if seen:
            return fine(f"{counted(seen, 'GPU')} visible, outside of a job")
        return moot(f"no job, and no GPU: {_why(scene)}")
    if asked is None and scene.allocation.scheduler == "slurm":
        return moot("this job holds no GPU, by Slurm's variables")
    if asked is None:
        return unknown("the scheduler does not tell how many GPUs the job holds")
    if asked == 0:
        return moot("this job holds no GPU")
    if not seen:
        return [_none(scene, asked)]
    if strange := _others(scene):
        return [_wrong(scene, strange)]
    if seen < asked and scene.local_size == 1:
        return [_fewer(scene, asked)]
    if seen > asked:
        return [_more(scene, asked)]
    return fine(f"{counted(seen, 'GPU')} of {asked} that the job holds here")


def _failed(scene: Scene) -> Symptom:
    first = scene.failed_drivers[0]
    return symptom(
        ID,
        Severity.CRITICAL,
        f"The driver of the GPUs does not work: {first.why}.",
        "End this job, and submit it again with `--exclude` and this node's name, "
        f"`{scene.survey.host}`; tell the administrator.",
        ("vendor", first.of.upper(), ""),
        dooms=bool(scene.allocation.gpus_held),
    )


def _none(scene: Scene, asked: int) -> Symptom:
    hidden = [vendor.next_step for vendor in scene.survey.gpus if vendor.next_step]
    return symptom(
        ID,
        Severity.CRITICAL,
        f"The job holds {counted(asked, 'GPU')} on this node, and none can be used: {_why(scene)}.",
        f"Next: {hidden[0]}."
        if hidden
        else "End this job: it would compute on the CPU. Tell the administrator of the node.",
        ("held by the job", asked, "GPUs"),
        ("visible", 0, "GPUs"),
        *(("variable", f"{name}={text}", "") for name, text in scene.survey.visible.items()),
        dooms=True,
    )


def _fewer(scene: Scene, asked: int) -> Symptom:
    return symptom(
        ID,
        Severity.WARNING,
        f"The job holds {counted(asked, 'GPU')} on this node, and a program started here sees "
        f"{len(scene.gpus)}.",
        "Take away what hides them: `unset CUDA_VISIBLE_DEVICES HIP_VISIBLE_DEVICES` before the "
        "program, or look for them in your own files; the scheduler sets what is right.",
        ("held by the job", asked, "GPUs"),
        ("visible", len(scene.gpus), "GPUs"),
        *(("variable", f"{name}={text}", "") for name, text in scene.survey.visible.items()),
    )


def _more(scene: Scene, asked: int) -> Symptom:
    return symptom(
        ID,
        Severity.WARNING,
        f"The job holds {counted(asked, 'GPU')} on this node, and a program started here sees "
        f"{len(scene.gpus)}: the others are other people's.",
        "Use no more than the job's own: leave `CUDA_VISIBLE_DEVICES` and `ROCR_VISIBLE_DEVICES` "
        "as the scheduler sets them.",
        ("held by the job", asked, "GPUs"),
        ("visible", len(scene.gpus), "GPUs"),
    )


def _others(scene: Scene) -> list[Device]:
    """Return GPUs in use that Slurm gave to somebody else, on a node that shows all of its own.

    Where a job sees its own alone, and with AMD always, they are counted anew, from 0.
    """
    if not any(gpu.vendor == "nvidia" for gpu in scene.hidden_gpus):
        return []
    try:
        own = parse_cores(scene.survey.visible.get("SLURM_JOB_GPUS", ""))
    except InputError:
        return []
    return [gpu for gpu in scene.gpus if own and not gpu.parent_id and gpu.index not in own]


def _wrong(scene: Scene, strange: list[Device]) -> Symptom:
    visible = scene.survey.visible
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


def _why(scene: Scene) -> str:
    # The vendor that has GPUs on this node has more to say than the other.
    vendors = [vendor for vendor in scene.survey.gpus if vendor.others] or scene.survey.gpus
    return joined([vendor.why for vendor in vendors]) if vendors else "no driver was asked"
