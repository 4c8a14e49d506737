"""A GPU was held and never used."""

from __future__ import annotations

from collections.abc import Mapping

from teho.explain.rules import _advice
from teho.explain.rules._look import Gpu, Look, Use, ever, highest_use, name_all
from teho.model.finding import Abstention, Finding, Severity, Threshold
from teho.model.missing import Missing, Reason
from teho.model.run import Run
from teho.model.summary import Summary

__all__ = ["KIND", "judge"]

KIND = "gpu_never_used"


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Find GPUs that nothing ever ran on and that no process of the job sat on.

    A process on an idle GPU (TensorFlow takes the memory of all) leaves the case to
    the rules of GPUs that are used too little.
    """
    look = Look(KIND, run, summary, thresholds)
    unused: list[tuple[Gpu, Use]] = []
    for of in look.gpus:
        use = look.use(of)
        if use is None or not _enough_samples(look, of, use):
            continue
        if use.was_none(look.limit("busy_max_percent")) and not _held_by_job(of):
            unused.append((of, use))
    return look.outcome([_finding(look, unused)] if unused else [])


def _held_by_job(of: Gpu) -> bool:
    return ever(of, "gpu_job_processes") or ever(of, "gpu_job_memory_bytes")


def _enough_samples(look: Look, of: Gpu, use: Use) -> bool:
    samples = use.stat.covered_s / look.period_s(of.node.name)
    if samples >= look.limit("samples_min"):
        return True
    too_few = Missing(Reason.UNRECORDED, f"only {samples:.0f} samples")
    return look.figure(of, use.label, too_few) is not None


def _finding(look: Look, unused: list[tuple[Gpu, Use]]) -> Finding:
    idle = [of for of, _ in unused]
    return look.finding(
        Severity.CRITICAL,
        f"{name_all(idle)} {'was' if len(idle) == 1 else 'were'} never used.",
        evidence=highest_use(unused),
        judged_by=["busy_max_percent"],
        action=_action(look, idle),
        subjects=idle,
    )


def _action(look: Look, idle: list[Gpu]) -> str:
    scheduler = look.scheduler
    names = {of.key for of in idle}
    used = [of for of in look.gpus if of.key not in names]
    if not used:
        ask = "do not ask for one" if scheduler else "nothing need be changed"
        return (
            "Check that the program finds a GPU: "
            '`python -c "import torch; print(torch.cuda.is_available())"`, and that it moves its '
            f"work there, as `model.to('cuda')`. If it is not meant to use a GPU, {ask}."
        )
    asked = _advice.use_gpus(scheduler, used, len(look.run.nodes))
    each = _advice.process_for_each(scheduler, idle[0].node, len(look.run.nodes))
    return (
        f"Hold what is used: {asked}. Or use what is held, with a process for each GPU: {each} "
        "and DistributedDataParallel."
    )
