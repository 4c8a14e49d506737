"""The program held a GPU's memory and computed nothing on it."""

from __future__ import annotations

from collections.abc import Mapping

from teho.explain.rules._look import Gpu, Look, Use, ever, highest_use, known, name_all, per_place
from teho.model.finding import Abstention, Finding, Severity, Threshold
from teho.model.missing import Missing, Reason
from teho.model.run import Run
from teho.model.summary import Summary

__all__ = ["KIND", "judge"]

KIND = "gpu_held_idle"


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Find GPUs that a process of the job sat on and that nothing ever ran on."""
    look = Look(KIND, run, summary, thresholds)
    held: list[tuple[Gpu, Use]] = []
    for of in look.gpus:
        use = look.use(of)
        if use is None or not use.was_none(look.limit("busy_max_percent")) or not _sat_on(look, of):
            continue
        samples = use.stat.covered_s / look.period_s(of.node.name)
        if samples >= look.limit("samples_min"):
            held.append((of, use))
        else:
            too_few = Missing(Reason.UNRECORDED, f"only {samples:.0f} samples")
            look.figure(of, use.label, too_few)
    return look.outcome([_finding(look, held)] if held else [])


def _sat_on(look: Look, of: Gpu) -> bool:
    """Say whether a process of the job held the GPU; noted where nobody knows."""
    if ever(of, "gpu_job_processes") or ever(of, "gpu_job_memory_bytes"):
        return True
    look.stat(of, "gpu_job_processes")
    return False


def _finding(look: Look, held: list[tuple[Gpu, Use]]) -> Finding:
    places = [of for of, _ in held]
    them = "it" if len(places) == 1 else "them"
    return look.finding(
        Severity.CRITICAL,
        f"The program held {name_all(places)} and computed nothing on {them}.",
        evidence=(
            *highest_use(held),
            *per_place(
                "memory that the program held there",
                "bytes",
                known(places, "gpu_job_memory_bytes", "max"),
            ),
        ),
        judged_by=["busy_max_percent"],
        action=(
            "See that the work goes to the GPU, not only its memory: PyTorch needs "
            "`model.to('cuda')` and the batches there as well; TensorFlow and JAX take the memory "
            "of every GPU that they see, and name those they compute on with "
            '`python -c "import jax; print(jax.devices())"`.'
        ),
        subjects=places,
    )
