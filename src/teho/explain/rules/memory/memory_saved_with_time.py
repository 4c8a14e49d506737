"""The backward pass computes activations again to save memory, although much memory is free."""

from __future__ import annotations

from teho.explain.activities import ActivityTime, activity_times
from teho.explain.places import gpus_of
from teho.explain.program_context import in_lines, is_on_gpu
from teho.explain.rule import Certainty, Evidence, Findings, ProgramContext, Severity, chosen
from teho.model.missing import Missing
from teho.model.program import MainProcess

RANK = 203
SEVERITY = "critical, warning, remark"
CERTAINTY = Certainty.LIKELY
THRESHOLDS = {
    "used_percent": chosen(
        50.0,
        "%",
        "the activations that are not kept may need as much memory as everything else",
    ),
    "recomputed_min_s": chosen(
        1.0, "s", "Teho reads the stacks about 20 times per second: this time has about 20 samples"
    ),
    "recomputed_percent": chosen(
        30.0, "%", "computing all activations again takes about a quarter of the time of a step"
    ),
}

_ACTIVITY = "activations_recomputed"


def judge(context: ProgramContext) -> Findings:
    """Compare the time of computing activations again with the memory that was not used."""
    for main in context.mains[:1]:
        time = next((one for one in activity_times(main) if one.activity.name == _ACTIVITY), None)
        if time is None or time.wall_s < context.limit("recomputed_min_s"):
            continue
        share = 100 * time.wall_s / main.process.wall_s
        if share < context.limit("lost_percent"):
            continue
        used = _used_percent(context, main)
        if used is not None and used < context.limit("used_percent"):
            yield context.lost(
                f"{_sentence(time, share)}, although only {used:.0f} % of the memory was used.",
                share_percent=share,
                evidence=(
                    Evidence("computing activations again", share, "%"),
                    Evidence("memory used, highest", used, "%"),
                ),
                action=(
                    "Keep the activations: remove `torch.utils.checkpoint` "
                    "(`gradient_checkpointing=False` in Transformers). If they do not fit, compute "
                    "only some layers again."
                ),
                judged_by=["used_percent"],
                regain_percent=(0.7 * share, share),
                lines=time.lines,
            )
        elif share >= context.limit("recomputed_percent"):
            yield context.finding(
                Severity.REMARK,
                f"{_sentence(time, share)}.",
                evidence=(
                    Evidence("computing activations again", share, "%"),
                    *in_lines(time.lines),
                ),
                action=(
                    "If the memory is large enough, use `torch.utils.checkpoint` only for some "
                    "layers. First check the peak of the memory."
                ),
                judged_by=["recomputed_percent"],
                certainty=Certainty.POSSIBLE,
            )


def _sentence(time: ActivityTime, share: float) -> str:
    frame = time.lines[0][0] if time.lines else None
    place = f" at {frame.file.rpartition('/')[2]}:{frame.line}" if frame else ""
    return (
        f"The backward pass{place} computed activations again (checkpointing) for {share:.0f} % "
        "of the time"
    )


def _used_percent(context: ProgramContext, main: MainProcess) -> float | None:
    """Return the highest used share of the memory for activations; None if it is not known."""
    node = context.node_of(main)
    if node is None:
        return None
    if is_on_gpu(main):
        shares = []
        for gpu in gpus_of(node):
            used = context.stat(gpu, "gpu_memory_used_bytes")
            total = context.gpu_memory_total(gpu) if used else None
            shares.append(100 * used.max / total if used and total else None)
        known = [share for share in shares if share is not None]
        return max(known) if known and len(known) == len(shares) else None
    peak, limit = node.memory_peak_bytes, node.memory_limit_bytes
    if isinstance(peak, Missing) or isinstance(limit, Missing) or not limit:
        return None
    return 100 * peak / limit
